#pragma once

#include <libvirt/libvirt.h>

#include <string>

#include "vfpass/hypervisor.hpp"

namespace vfpass::libvirt {

/// A domain or network can vanish between two calls; listings then leave it out.
struct Vanished {};

std::string domainNamed(const std::string& name);

/// Both return why libvirt cannot send the XML of this domain or network; that must not end a
/// listing. They throw Vanished, or Error without a connection: then none can be read.
DomainXml readXml(virDomainPtr domain, unsigned flags, const std::string& name);
DomainXml readXml(virNetworkPtr network, const std::string& name);

}  // namespace vfpass::libvirt
