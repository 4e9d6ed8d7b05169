#pragma once

#include <optional>
#include <string>
#include <vector>

#include "rdma/gid_choice.hpp"
#include "system/sysfs_reader.hpp"

namespace vfpass::probe {

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

}  // namespace vfpass::probe
