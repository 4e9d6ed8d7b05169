#include "rdma/rdma_inventory.hpp"

#include <array>
#include <nlohmann/json.hpp>
#include <optional>

#include "rdma/port_addresses.hpp"
#include "rdma/port_check.hpp"
#include "rdma/rdma_cm_library.hpp"
#include "rdma/rdma_devices.hpp"
#include "rdma/registration.hpp"
#include "rdma/verbs_objects.hpp"
#include "vfpass/error.hpp"

namespace vfpass::probe {
namespace {

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
