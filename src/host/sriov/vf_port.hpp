#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "netlink/netlink_exchange.hpp"
#include "netlink/netlink_message.hpp"
#include "sysfs/kernel_write.hpp"
#include "vfpass/inventory.hpp"
#include "vfpass/pci_address.hpp"
#include "vfpass/vf_attributes.hpp"

namespace vfpass::host {

/// Settings to apply to one VF; only members with a value are sent.
struct VfRequest {
  unsigned index = 0;
  VfSettings settings;

  auto operator<=>(const VfRequest&) const = default;
};

/// Maximum length of one request in bytes. The kernel accepts nested lists up to 64 KiB.
inline constexpr std::size_t requestLimit = 32768;

/// RTM_GETLINK for one interface with its VFs, without their statistics, which would make the VF
/// list with its 16-bit length wrap sooner.
std::string linkQuery(int interfaceIndex, std::uint32_t sequence);
/// The same with the statistics.
std::string trafficQuery(int interfaceIndex, std::uint32_t sequence);

/// RTM_SETLINK messages that apply these settings, as few as `limit` allows. They do not request
/// the VF list.
std::vector<std::string> linkChanges(int interfaceIndex, std::uint32_t sequence,
                                     const std::vector<VfRequest>& requests,
                                     std::size_t limit = requestLimit);

/// The VF settings in a link's reply, by index. VFs can be missing: the list has a 16-bit length
/// that wraps, and a driver may fail for one of them.
using VfTable = std::map<unsigned, VfSettings>;

/// Parses one RTM_NEWLINK message. Malformed parts are skipped.
/// `infiniband`: only link state and GUIDs are valid; IPoIB reports the PF's own address as MAC.
/// Nullopt when the message is not about that interface.
std::optional<VfTable> parseLinkReply(std::string_view bytes, int interfaceIndex, bool infiniband);

/// Statistics of the VFs, by index; VFs without statistics are missing.
using VfTrafficTable = std::map<unsigned, VfTraffic>;

/// Parses the statistics in one RTM_NEWLINK message, with the limits of parseLinkReply.
std::optional<VfTrafficTable> parseTrafficReply(std::string_view bytes, int interfaceIndex);

/// The counters of VF `index`; nullopt where unknown. rtnetlink reports zeros for a driver without
/// VF counters (rtnl_fill_vfinfo without ndo_get_vf_stats, as for igb), so a table of zeros is only
/// valid for a driver that is known to count: mlx5_core.
std::optional<VfTraffic> trafficOf(const VfTrafficTable& table, unsigned index,
                                   std::string_view driver);

/// All counters of the VFs, by index; VFs without statistics are missing.
using VfStatisticsTable = std::map<unsigned, VfStatistics>;

/// Parses the same message as parseTrafficReply; counters that it lacks are missing.
std::optional<VfStatisticsTable> parseStatisticsReply(std::string_view bytes, int interfaceIndex);

/// The table, or an empty one if its zeros mean that the driver does not count (trafficOf).
VfStatisticsTable countedStatistics(VfStatisticsTable table, std::string_view driver);

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

/// Kernel::totalVfVectors().
std::optional<unsigned> readTotalVectors(const Root& root, KernelWriter& writer,
                                         const PciAddress& pf, std::chrono::milliseconds deadline);

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
