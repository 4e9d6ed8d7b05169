#pragma once

#include "kernel_write.hpp"
#include "vf_port.hpp"
#include "vfpass/pci_address.hpp"

namespace vfpass::host {

/// Takes GUIDs and link state from `sriov/N/{node,port,policy}` where `table` does not have them.
/// MLNX_OFED and DOCA-OFED put those files below the PF; the kernel's own mlx5 has none.
void readOfedFiles(const Root& root, const PciAddress& pf, VfTable& table);

/// An InfiniBand PF: over netlink, and where that is refused as not supported, by the files.
class OfedPort final : public VfPort {
 public:
  OfedPort(VfPort& netlink, const Root& root, KernelWriter& writer, const PciAddress& pf,
           std::chrono::milliseconds deadline)
      : netlink_(netlink), root_(root), writer_(writer), pf_(pf), deadline_(deadline) {}

  VfTable read() override;
  Acknowledgement set(const std::vector<VfRequest>& requests) override;

 private:
  VfPort& netlink_;
  const Root& root_;
  KernelWriter& writer_;
  PciAddress pf_;
  std::chrono::milliseconds deadline_;
};

}  // namespace vfpass::host
