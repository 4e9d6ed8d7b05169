#include "vfpass/hypervisor/libvirt.hpp"

#include <filesystem>

#include "open_module.hpp"
#include "vfpass/base/program_file.hpp"

namespace vfpass::hypervisor {
namespace {

const LibvirtModule& module() {
  static const std::filesystem::path file = programFile("vfpass-libvirt.so");
  static const LibvirtModule& opened = openModule(file);
  return opened;
}

}  // namespace

std::unique_ptr<Hypervisor> connectLibvirt(const std::string& uri) { return module().connect(uri); }

std::string daemonVersions(const std::string& uri) { return module().daemonVersions(uri); }

}  // namespace vfpass::hypervisor
