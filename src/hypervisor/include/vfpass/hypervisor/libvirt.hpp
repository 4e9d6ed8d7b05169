#pragma once

#include <memory>
#include <string>

#include "vfpass/hypervisor.hpp"

// The first call of either function opens the libvirt module, which loads libvirt and the 50
// libraries that libvirt needs; commands without such a call start without them. Both throw Error
// if the module is missing or belongs to another build.
namespace vfpass::hypervisor {

/// Connects to libvirt. An empty URI means LIBVIRT_DEFAULT_URI or, if that is unset,
/// qemu:///system. The Error distinguishes: daemon not running, no permission, unknown URI.
std::unique_ptr<Hypervisor> connectLibvirt(const std::string& uri);

/// Versions of the libvirt that serves this URI and of the emulator that it runs: `9.0.0 7.2.22`.
/// Throws as connectLibvirt does.
std::string daemonVersions(const std::string& uri);

}  // namespace vfpass::hypervisor
