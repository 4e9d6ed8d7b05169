#include "vfpass/hypervisor/libvirt_module.hpp"
#include "vfpass/hypervisor/module_build.hpp"
#include "vfpass/libvirt/libvirt_hypervisor.hpp"

// The factory that src/hypervisor looks up (libvirtModuleSymbol).
extern "C" const vfpass::hypervisor::LibvirtModule* vfpassLibvirtModule() {
  static constexpr vfpass::hypervisor::LibvirtModule module{
      VFPASS_MODULE_BUILD, vfpass::libvirt::connect, vfpass::libvirt::daemonVersions};
  return &module;
}
