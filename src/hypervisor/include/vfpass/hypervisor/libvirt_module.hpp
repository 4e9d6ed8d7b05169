#pragma once

#include <memory>
#include <string>

#include "vfpass/hypervisor.hpp"

namespace vfpass::hypervisor {

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

}  // namespace vfpass::hypervisor
