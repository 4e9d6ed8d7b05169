#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "netlink/netlink_exchange.hpp"
#include "netlink/netlink_message.hpp"
#include "sriov/vf_message.hpp"
#include "sysfs/kernel_write.hpp"
#include "vfpass/pci_address.hpp"

namespace vfpass::host {

/// The netdev of a PF, through which its VFs are read and configured; tests substitute a simulated
/// driver.
class VfPort {
 public:
  VfPort() = default;
  VfPort(const VfPort&) = delete;
  VfPort& operator=(const VfPort&) = delete;
  virtual ~VfPort() = default;

  /// The settings that the driver currently reports. Throws Error, TimeoutError.
  virtual VfTable read() = 0;
  /// Sends all requests in as few messages as possible and stops at the first refusal; settings
  /// applied before it remain. Throws Error when the kernel does not reply.
  virtual Acknowledgement set(const std::vector<VfRequest>& requests) = 0;
};

/// VfPort over rtnetlink. Uses the interface index, because names change. Each exchange runs in a
/// guarded child: the kernel handles the request within sendmsg(2) under the RTNL, and blocks while
/// another task holds it.
class NetlinkPort final : public VfPort {
 public:
  /// `name` is for messages. `pf`: the PF whose VFs are configured; only used by set().
  NetlinkPort(int interfaceIndex, bool infiniband, std::string name,
              std::chrono::milliseconds deadline, std::optional<PciAddress> pf = std::nullopt);
  VfTable read() override;
  Acknowledgement set(const std::vector<VfRequest>& requests) override;
  /// Traffic of each VF; empty where the driver does not count it. Throws Error, TimeoutError.
  VfTrafficTable readTraffic();
  /// All counters of each VF; empty where the driver does not report them. Throws like readTraffic.
  VfStatisticsTable readStatistics();

 private:
  std::string query(const std::string& request);
  [[nodiscard]] ExchangePurpose reading() const;

  int interfaceIndex_;
  bool infiniband_;
  std::string name_;
  std::chrono::milliseconds deadline_;
  std::optional<PciAddress> pf_;
  std::uint32_t sequence_ = 0;
};

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

/// The VFs' interrupt vectors in addition to what another port has: their number is in each VF's
/// configuration space, and a file of the VF changes it while no driver is bound.
class VectorPort final : public VfPort {
 public:
  VectorPort(VfPort& others, const Root& root, KernelWriter& writer, const PciAddress& pf,
             std::chrono::milliseconds deadline)
      : others_(others), root_(root), writer_(writer), pf_(pf), deadline_(deadline) {}

  VfTable read() override;
  Acknowledgement set(const std::vector<VfRequest>& requests) override;

 private:
  Acknowledgement write(const PciAddress& vf, std::uint16_t vectors);

  VfPort& others_;
  const Root& root_;
  KernelWriter& writer_;
  PciAddress pf_;
  std::chrono::milliseconds deadline_;
};

/// The interrupt vectors of a VF: Table Size of its MSI-X capability, plus one. Empty: it cannot be
/// read.
std::optional<std::uint16_t> readVectors(const Folder& vf);

/// A netdev whose VFs are read.
struct VfNetdev {
  int index = 0;
  bool infiniband = false;
  std::string name;  ///< for messages
};

struct VfAnswer {
  /// As from NetlinkPort::read(). Nullopt if nothing is observable: the netdev no longer exists or
  /// is detached, or netlink is not permitted.
  std::optional<VfTable> table;
  bool detached = false;  ///< see PhysicalFunction::netdevDetached
};

/// The VFs of each netdev, read in one guarded child. Waits up to `deadline` for
/// each netdev; throws TimeoutError, which names the first one without a reply.
std::vector<VfAnswer> readVfTables(const std::vector<VfNetdev>& netdevs,
                                   std::chrono::milliseconds deadline);

/// Adds GUIDs and link state that are missing in `table` from `sriov/N/{node,port,policy}`.
/// MLNX_OFED and DOCA-OFED create these files below the PF; the mainline mlx5 driver does not.
void readOfedFiles(const Root& root, const PciAddress& pf, VfTable& table);

}  // namespace vfpass::host
