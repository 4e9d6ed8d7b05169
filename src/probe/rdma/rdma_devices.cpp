#include "rdma/rdma_devices.hpp"

#include <cstdint>

#include "rdma/partition_choice.hpp"
#include "vfpass/base/text.hpp"

namespace vfpass::probe {
namespace {

const std::string devicesFolder = "/sys/class/infiniband/";
constexpr int maxGids = 256;

std::vector<GidEntry> readGids(const SysfsReader& sysfs, const std::string& port) {
  std::vector<GidEntry> gids;
  for (int index = 0; index < maxGids; ++index) {
    const std::string number = std::to_string(index);
    const auto gid = sysfs.text(port + "/gids/" + number);
    if (!gid) {
      break;
    }
    if (!isEmptyGid(*gid)) {
      gids.push_back({index, *gid, sysfs.textOrEmpty(port + "/gid_attrs/types/" + number),
                      sysfs.textOrEmpty(port + "/gid_attrs/ndevs/" + number)});
    }
  }
  return gids;
}

std::vector<std::string> readPartitionKeys(const SysfsReader& sysfs, const std::string& port) {
  std::vector<std::string> keys;
  for (std::size_t index = 0; index < maxPartitions; ++index) {
    const auto key = sysfs.text(port + "/pkeys/" + std::to_string(index));
    if (!key) {
      break;
    }
    if (*key != "0x0000") {
      keys.push_back(*key);
    }
  }
  return keys;
}

RdmaPort readPort(const SysfsReader& sysfs, const std::string& folder, int number) {
  RdmaPort port;
  port.number = number;
  port.state = sysfs.textOrEmpty(folder + "/state");
  port.physicalState = sysfs.textOrEmpty(folder + "/phys_state");
  port.rate = sysfs.textOrEmpty(folder + "/rate");
  port.linkLayer = sysfs.textOrEmpty(folder + "/link_layer");
  port.localId = sysfs.textOrEmpty(folder + "/lid");
  port.managerId = sysfs.textOrEmpty(folder + "/sm_lid");
  port.partitionKeys = readPartitionKeys(sysfs, folder);
  port.gids = readGids(sysfs, folder);
  port.gidIndex = recommendedGid(port.gids, port.ethernet());
  return port;
}

}  // namespace

std::vector<RdmaDevice> readRdmaDevices(const SysfsReader& sysfs) {
  std::vector<RdmaDevice> devices;
  for (const std::string& name : sysfs.names(devicesFolder)) {
    const std::string folder = devicesFolder + name;
    RdmaDevice device;
    device.name = name;
    device.nodeGuid = sysfs.textOrEmpty(folder + "/node_guid");
    device.firmware = sysfs.textOrEmpty(folder + "/fw_ver");
    device.pci = sysfs.linkName(folder + "/device");
    device.parent = sysfs.textOrEmpty(folder + "/parent");
    for (const std::string& port : sysfs.names(folder + "/ports")) {
      if (const auto number = parseNumber(port); number && *number < UINT8_MAX) {
        device.ports.push_back(
            readPort(sysfs, folder + "/ports/" + port, static_cast<int>(*number)));
      }
    }
    devices.push_back(device);
  }
  return devices;
}

std::optional<int> readGidChoice(const SysfsReader& sysfs, const std::string& device, int port) {
  const std::string folder = devicesFolder + device + "/ports/" + std::to_string(port);
  return readPort(sysfs, folder, port).gidIndex;
}

}  // namespace vfpass::probe
