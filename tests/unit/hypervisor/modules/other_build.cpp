#include "vfpass/hypervisor/libvirt_module.hpp"

// A module that another vfpass was built with; calling its functions would crash.
extern "C" const vfpass::hypervisor::LibvirtModule* vfpassLibvirtModule() {
  static constexpr vfpass::hypervisor::LibvirtModule module{"0.0.9-other", nullptr, nullptr};
  return &module;
}
