#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "system/sysfs_reader.hpp"

namespace vfpass::probe {

/// One entry of a port's GID table, as sysfs shows it.
struct GidEntry {
  int index = 0;
  std::string gid;     ///< eight groups of four hexadecimal digits
  std::string type;    ///< `IB/RoCE v1` or `RoCE v2`
  std::string netdev;  ///< that has the address; empty on InfiniBand
};

/// The index to use. On RoCE: version 2 before version 1 (it is routable, and switches' congestion
/// control supports it), within each an IPv4 address before a global IPv6 address before a
/// link-local one, then the lowest index. On InfiniBand: the lowest. nullopt for an empty table.
std::optional<int> recommendedGid(const std::vector<GidEntry>& entries, bool ethernet);

/// All zeroes: an unused entry.
bool isEmptyGid(const std::string& gid);

/// One port of an RDMA device, with the kernel's texts.
struct RdmaPort {
  int number = 1;
  std::string state;                       ///< `4: ACTIVE`
  std::string physicalState;               ///< `5: LinkUp`
  std::string rate;                        ///< `400 Gb/sec (4X NDR)`; rxe reports a meaningless 2.5
  std::string linkLayer;                   ///< `Ethernet` or `InfiniBand`
  std::string localId;                     ///< `0x7`
  std::string managerId;                   ///< the subnet manager's LID
  std::vector<std::string> partitionKeys;  ///< the used ones, `0xffff`; at most 256
  std::vector<GidEntry> gids;              ///< the used ones, at most 256
  std::optional<int> gidIndex;             ///< the one to use

  [[nodiscard]] bool ethernet() const { return linkLayer == "Ethernet"; }
};

/// One RDMA device as /sys/class/infiniband shows it, without rdma-core.
struct RdmaDevice {
  std::string name;
  std::string nodeGuid;
  std::string firmware;
  std::string pci;     ///< empty for software devices
  std::string parent;  ///< the netdev below a software device
  std::vector<RdmaPort> ports;
};

std::vector<RdmaDevice> readRdmaDevices(const SysfsReader& sysfs);

/// The GID index to use on one port; nullopt when the table is empty or there is no such port.
std::optional<int> readGidChoice(const SysfsReader& sysfs, const std::string& device, int port);

/// The error and traffic counters of a port, by name: those of the port and of the hardware. Empty
/// if the driver has none. At most 256.
nlohmann::json readCounters(const SysfsReader& sysfs, const std::string& device, int port);

/// `{devices: [{name, ports: [{number, counters}]}]}`, without opening any device.
nlohmann::json rdmaCounters(const SysfsReader& sysfs);

/// `{libibverbs: {...}, devices: [...]}`: devices as the kernel shows them, and the result of
/// opening each with the library.
nlohmann::json rdmaInventory(const SysfsReader& sysfs);

}  // namespace vfpass::probe
