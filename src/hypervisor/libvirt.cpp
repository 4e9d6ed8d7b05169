#include "vfpass/hypervisor/libvirt.hpp"

#include "open_module.hpp"
#include "vfpass/base/program_file.hpp"

namespace vfpass::hypervisor {
namespace {

const LibvirtModule& module() {
  static const LibvirtModule& opened = openModule(programFile("vfpass-libvirt.so"));
  return opened;
}

}  // namespace

std::unique_ptr<Hypervisor> connectLibvirt(const std::string& uri) { return module().connect(uri); }

std::string daemonVersions(const std::string& uri) { return module().daemonVersions(uri); }

}  // namespace vfpass::hypervisor
