#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "vfpass/hypervisor.hpp"

namespace vfpass::hypervisor {

// The first call of either function opens the libvirt module, which loads libvirt and the 50
// libraries that libvirt needs; commands without such a call start without them. Both throw Error
// if the module is missing or belongs to another build.

/// Connects to libvirt. An empty URI means LIBVIRT_DEFAULT_URI or, if that is unset,
/// qemu:///system. The Error distinguishes: daemon not running, no permission, unknown URI.
std::unique_ptr<Hypervisor> connectLibvirt(const std::string& uri);

/// Versions of the libvirt that serves this URI and of the emulator that it runs: `9.0.0 7.2.22`.
/// Throws as connectLibvirt does.
std::string daemonVersions(const std::string& uri);

/// What the libvirt module (src/libvirt) provides. The pointers are valid until the process ends,
/// because the module is never closed: its objects and exceptions outlive every call.
struct LibvirtModule {
  /// VFPASS_MODULE_BUILD of the module. First, so that it can be read from a module of any build;
  /// the other members only if it is the program's own.
  const char* build;
  std::unique_ptr<Hypervisor> (*connect)(const std::string& uri);
  std::string (*daemonVersions)(const std::string& uri);
};

/// The only function that the module exports, a `const LibvirtModule*()` with C linkage.
constexpr const char* libvirtModuleSymbol = "vfpassLibvirtModule";

/// Loads the module. Throws Error if it is missing, if a user who cannot change this program could
/// have written it, if libvirt cannot be loaded, or if it belongs to another build.
const LibvirtModule& openModule(const std::filesystem::path& file);

}  // namespace vfpass::hypervisor
