#include "rdma/rdma_devices.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>
#include <tuple>

#include "rdma/endpoint.hpp"
#include "rdma/ip_address.hpp"
#include "rdma/queue_pair_connection.hpp"
#include "rdma/rdma_core.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/error.hpp"

namespace vfpass::probe {
namespace {

/// Lower is better.
std::tuple<int, int, int> rank(const GidEntry& entry, bool ethernet) {
  if (!ethernet) {
    return {0, 0, entry.index};
  }
  const int version = entry.type.find("v2") != std::string::npos ? 0 : 1;
  int address = 1;
  if (entry.gid.starts_with("0000:0000:0000:0000:0000:ffff:")) {
    address = 0;
  } else if (entry.gid.starts_with("fe80:")) {
    address = 2;
  }
  return {version, address, entry.index};
}

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

using Json = nlohmann::json;

constexpr std::array<const char*, 6> mtuNames = {"", "256", "512", "1024", "2048", "4096"};

Json toJson(const RdmaPort& port) {
  Json gids = Json::array();
  for (const GidEntry& entry : port.gids) {
    gids.push_back({{"index", entry.index},
                    {"gid", entry.gid},
                    {"type", entry.type},
                    {"netdev", entry.netdev}});
  }
  return {{"number", port.number},
          {"state", port.state},
          {"physical_state", port.physicalState},
          {"rate", port.rate},
          {"link_layer", port.linkLayer},
          {"lid", port.localId},
          {"sm_lid", port.managerId},
          {"p_keys", port.partitionKeys},
          {"gids", gids},
          {"gid_index", port.gidIndex ? Json(*port.gidIndex) : Json(nullptr)}};
}

/// Adds what only an opened device reports: the active MTU, and whether it supports DMA-BUF memory.
void queryDevice(const VerbsLibrary& library, Json& device) {
  const VerbsContext context = openDevice(library, device.at("name").get<std::string>());
  for (Json& port : device["ports"]) {
    ibv_port_attr attributes{};
    auto* compatible = reinterpret_cast<_compat_ibv_port_attr*>(&attributes);
    const auto number = static_cast<std::uint8_t>(port.at("number").get<int>());
    if (library.queryPort(context.get(), number, compatible) != 0) {
      continue;
    }
    port["grh_required"] = requiresGlobalHeader(attributes);
    if (attributes.active_mtu <= IBV_MTU_4096) {
      port["active_mtu"] = mtuNames.at(attributes.active_mtu);
    }
  }
  const auto domain = takeOver(library.allocatePd(context.get()), library.freePd,
                               "cannot create a protection domain");
  const std::string reason = dmaBufUnsupported(library, *domain);
  device["dma_buf"] = {{"supported", reason.empty()}, {"detail", reason}};
}

Json describe(const SysfsReader& sysfs, const RdmaDevice& device) {
  Json ports = Json::array();
  for (const RdmaPort& port : device.ports) {
    ports.push_back(toJson(port));
    ports.back()["counters"] = readCounters(sysfs, device.name, port.number);
    Json& addresses = ports.back()["ip_addresses"] = Json::array();
    for (const IpAddress& each : addressesOf(netdevsOf(sysfs, device, port))) {
      addresses.push_back(networkText(each));
    }
  }
  return {{"name", device.name}, {"node_guid", device.nodeGuid}, {"firmware", device.firmware},
          {"pci", device.pci},   {"parent", device.parent},      {"ports", ports}};
}

/// Returns false, with the reason in `report`, if the library is missing.
template <typename Library>
bool openLibrary(std::optional<Library>& library, Json& report) {
  try {
    library.emplace();
    report = {{"found", true}, {"detail", ""}};
  } catch (const Error& error) {
    report = {{"found", false}, {"detail", error.what()}, {"remedy", error.remedy()}};
  }
  return library.has_value();
}

}  // namespace

bool isEmptyGid(const std::string& gid) { return gid.find_first_not_of("0:") == std::string::npos; }

std::optional<int> recommendedGid(const std::vector<GidEntry>& entries, bool ethernet) {
  std::vector<GidEntry> used;
  std::ranges::copy_if(entries, std::back_inserter(used),
                       [](const GidEntry& entry) { return !isEmptyGid(entry.gid); });
  const auto best = std::ranges::min_element(
      used, {}, [ethernet](const GidEntry& entry) { return rank(entry, ethernet); });
  return best == used.end() ? std::nullopt : std::optional(best->index);
}

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

// Documentation/ABI/stable/sysfs-class-infiniband: `counters` has those of the InfiniBand
// specification, `hw_counters` the driver's own, next to `lifespan`, the age of cached values.
Json readCounters(const SysfsReader& sysfs, const std::string& device, int port) {
  constexpr std::size_t most = 256;
  Json counters = Json::object();
  for (const char* group : {"/counters", "/hw_counters"}) {
    const std::string folder = devicesFolder + device + "/ports/" + std::to_string(port) + group;
    for (const std::string& name : sysfs.names(folder)) {
      const auto value = parseNumber(sysfs.textOrEmpty(folder + "/" + name));
      if (value && name != "lifespan" && counters.size() < most) {
        counters[name] = *value;
      }
    }
  }
  return counters;
}

Json rdmaCounters(const SysfsReader& sysfs) {
  Json devices = Json::array();
  for (const RdmaDevice& device : readRdmaDevices(sysfs)) {
    Json ports = Json::array();
    for (const RdmaPort& port : device.ports) {
      ports.push_back(
          {{"number", port.number}, {"counters", readCounters(sysfs, device.name, port.number)}});
    }
    devices.push_back({{"name", device.name}, {"ports", ports}});
  }
  return {{"devices", devices}};
}

Json rdmaInventory(const SysfsReader& sysfs) {
  Json result{{"devices", Json::array()}};
  std::optional<VerbsLibrary> library;
  const bool usable = openLibrary(library, result["libibverbs"]);
  std::optional<RdmaCmLibrary> connectionManager;
  openLibrary(connectionManager, result["librdmacm"]);
  for (const RdmaDevice& found : readRdmaDevices(sysfs)) {
    Json device = describe(sysfs, found);
    try {
      if (usable) {
        queryDevice(*library, device);
      }
      device["opens"] = {{"done", usable}, {"detail", ""}};
    } catch (const Error& error) {
      device["opens"] = {{"done", false}, {"detail", error.what()}, {"remedy", error.remedy()}};
    }
    result["devices"].push_back(device);
  }
  return result;
}

}  // namespace vfpass::probe
