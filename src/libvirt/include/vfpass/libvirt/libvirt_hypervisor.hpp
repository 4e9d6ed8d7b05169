#pragma once

#include <memory>
#include <string>

#include "vfpass/hypervisor.hpp"

namespace vfpass::libvirt {

// Both functions throw Error if libvirt's client library cannot be loaded.

/// Connects to libvirt. An empty URI means LIBVIRT_DEFAULT_URI or, if that is unset,
/// qemu:///system. The Error distinguishes: daemon not running, no permission, unknown URI.
std::unique_ptr<Hypervisor> connect(const std::string& uri);

/// Versions of the libvirt that serves this URI and of the emulator that it runs: `9.0.0 7.2.22`.
/// Throws as connect does.
std::string daemonVersions(const std::string& uri);

/// Returns once the definitions of this connection's domains would survive a power failure. libvirt
/// syncs the new file of a definition and renames it, but does not sync the directory
/// (virFileRewrite in src/util/virfile.c), so that the old definition may come back. Does nothing
/// for a connection other than qemu:///system. Throws if the directory cannot be synced.
void syncDefinitions(const std::string& uri);

}  // namespace vfpass::libvirt
