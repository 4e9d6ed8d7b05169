#pragma once

#include <memory>
#include <string>

#include "vfpass/hypervisor.hpp"

namespace vfpass::libvirt {

/// Implements hypervisor::connectLibvirt().
std::unique_ptr<Hypervisor> connect(const std::string& uri);

/// Implements hypervisor::daemonVersions().
std::string daemonVersions(const std::string& uri);

}  // namespace vfpass::libvirt
