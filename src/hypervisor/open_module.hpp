#pragma once

#include <filesystem>

#include "vfpass/hypervisor/libvirt_module.hpp"

namespace vfpass::hypervisor {

/// Loads the module. Throws Error if it is missing, if a user who cannot change this program could
/// have written it, if libvirt cannot be loaded, or if it belongs to another build.
const LibvirtModule& openModule(const std::filesystem::path& file);

}  // namespace vfpass::hypervisor
