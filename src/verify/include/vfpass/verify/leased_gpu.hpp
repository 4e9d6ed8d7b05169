#pragma once

#include <map>
#include <string>
#include <vector>

#include "vfpass/pci_address.hpp"
#include "vfpass/verify/host_side.hpp"

namespace vfpass::verify {

/// Whether data is also moved through GPU memory.
enum class GpuTest {
  automatic,  ///< if vfpass leased the VM a GPU
  wanted,     ///< `--gpu`, or `verify: {paths: [gpu]}`
  excluded    ///< `verify: {paths: [host]}`
};

/// A GPU that vfpass leased to the running VM.
struct LeasedGpu {
  std::string entry;  ///< its entry in the mapping
  /// Its place in the guest's PCI tree, from the running domain's XML (topology::guestPath). Empty:
  /// unknown.
  std::vector<PciAddress> guestPath;
  std::map<std::string, GpuPath> paths;  ///< on the host, from the PF of each VF, by the VF's entry
};

}  // namespace vfpass::verify
