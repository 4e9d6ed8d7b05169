#pragma once

#include <libvirt/libvirt.h>

#include <string>

#include "libvirt_error.hpp"

namespace vfpass::libvirt {

/// A domain or network can vanish between two calls; listings then leave it out.
struct Vanished {};

std::string domainNamed(const std::string& name);

/// For any call on a domain that existed before.
[[noreturn]] void throwFailure(const std::string& what, const Failure& failure);

/// Both throw Vanished, or Error if libvirt cannot send the XML of this domain or network.
std::string readXml(virDomainPtr domain, unsigned flags, const std::string& name);
std::string readXml(virNetworkPtr network, const std::string& name);

}  // namespace vfpass::libvirt
