#pragma once

#include "sriov/vf_port.hpp"
#include "sysfs/kernel_write.hpp"
#include "vfpass/pci_address.hpp"

namespace vfpass::host {

/// Adds GUIDs and link state that are missing in `table` from `sriov/N/{node,port,policy}`.
/// MLNX_OFED and DOCA-OFED create these files below the PF; the mainline mlx5 driver does not.
void readOfedFiles(const Root& root, const PciAddress& pf, VfTable& table);

/// An InfiniBand PF. Uses netlink, and the files where netlink returns EOPNOTSUPP, or where the PF
/// has no IPoIB netdev.
class OfedPort final : public VfPort {
 public:
  /// `netlink`: null where the PF has no netdev.
  OfedPort(VfPort* netlink, const Root& root, KernelWriter& writer, const PciAddress& pf,
           std::chrono::milliseconds deadline)
      : netlink_(netlink), root_(root), writer_(writer), pf_(pf), deadline_(deadline) {}

  VfTable read() override;
  Acknowledgement set(const std::vector<VfRequest>& requests) override;

 private:
  VfPort* netlink_;
  const Root& root_;
  KernelWriter& writer_;
  PciAddress pf_;
  std::chrono::milliseconds deadline_;
};

}  // namespace vfpass::host
