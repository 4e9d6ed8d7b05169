#include "guest_view.hpp"

#include <algorithm>
#include <charconv>
#include <limits>
#include <sstream>

#include "vfpass/agent/confinement.hpp"
#include "vfpass/agent/reply.hpp"
#include "vfpass/base/text.hpp"

namespace vfpass::verify {
namespace {

using Json = nlohmann::json;

std::optional<int> smallNumber(const Json& object, const char* name) {
  const Json& value = agent::member(object, name);
  if (!value.is_number_integer() || value.get<std::int64_t>() < 0 ||
      value.get<std::int64_t>() > std::numeric_limits<std::uint16_t>::max()) {
    return std::nullopt;
  }
  return value.get<int>();
}

// `0x7`, as sysfs writes LIDs and P_Keys.
std::optional<std::uint16_t> hexNumber(const std::string& text) {
  std::uint16_t number = 0;
  const char* const end = text.data() + text.size();
  const bool prefixed = text.starts_with("0x");
  const auto read = std::from_chars(text.data() + (prefixed ? 2 : 0), end, number, 16);
  return prefixed && read.ec == std::errc{} && read.ptr == end ? std::optional(number)
                                                               : std::nullopt;
}

void readSubnet(const Json& json, GuestPort& port) {
  constexpr std::size_t most = 256;
  port.localId = hexNumber(agent::textMember(json, "lid"));
  port.managerId = hexNumber(agent::textMember(json, "sm_lid"));
  port.partitionsReported = agent::member(json, "p_keys").is_array();
  for (const Json& each : agent::listMember(json, "p_keys")) {
    const auto key = each.is_string() ? hexNumber(each.get<std::string>()) : std::nullopt;
    if (key && port.partitions.size() < most) {
      port.partitions.push_back(*key);
    }
  }
}

GuestPort readPort(const Json& json) {
  GuestPort port;
  port.number = smallNumber(json, "number").value_or(1);
  port.state = agent::textMember(json, "state");
  port.rate = agent::textMember(json, "rate");
  port.linkLayer = agent::textMember(json, "link_layer");
  port.gidIndex = smallNumber(json, "gid_index");
  readSubnet(json, port);
  for (const Json& each : agent::listMember(json, "ip_addresses")) {
    if (each.is_string()) {
      port.ipAddresses.push_back(each.get<std::string>());
    }
  }
  // A string, as the probe passes on the library's name for the MTU.
  const auto mtu = parseNumber(agent::textMember(json, "active_mtu"));
  if (mtu && *mtu <= std::numeric_limits<std::uint16_t>::max()) {
    port.activeMtu = static_cast<unsigned>(*mtu);
  }
  for (const Json& gid : agent::listMember(json, "gids")) {
    port.gids.push_back(
        {agent::textMember(gid, "gid"), smallNumber(gid, "index"), agent::textMember(gid, "type")});
  }
  return port;
}

std::optional<unsigned> unsignedNumber(const Json& object, const char* name) {
  const auto number = smallNumber(object, name);
  return number ? std::optional(static_cast<unsigned>(*number)) : std::nullopt;
}

std::optional<bool> present(const Json& capability) {
  const Json& value = agent::member(capability, "present");
  return value.is_boolean() ? std::optional(value.get<bool>()) : std::nullopt;
}

GuestRdmaDevice readRdmaDevice(const Json& json) {
  const Json& opens = agent::member(json, "opens");
  GuestRdmaDevice device{agent::textMember(json, "name"),
                         agent::textMember(json, "node_guid"),
                         agent::textMember(json, "pci"),
                         agent::textMember(json, "parent"),
                         agent::flagMember(opens, "done"),
                         agent::textMember(opens, "detail"),
                         {}};
  for (const Json& port : agent::listMember(json, "ports")) {
    device.ports.push_back(readPort(port));
  }
  return device;
}

GuestFunction readFunction(const Json& json) {
  constexpr unsigned networkClass = 0x02;
  return {agent::textMember(json, "address"), agent::countMember(json, "vendor"),
          agent::countMember(json, "device"),
          agent::countMember(json, "class") >> 16U == networkClass};
}

// `/sys/devices/pci0000:00/0000:00:02.0/0000:01:00.0`
GuestPath readPath(const std::string& text) {
  GuestPath path;
  std::istringstream parts(text);
  for (std::string part; std::getline(parts, part, '/');) {
    if (const auto address = parsePciAddress(part)) {
      path.push_back(*address);
    }
  }
  return path;
}

// The CUDA driver reports 1 for true.
bool isOne(const Json& value) {
  return value.is_number_integer() && value.get<std::int64_t>() == 1;
}

void readGpus(const Json& document, GuestView& view) {
  const Json& gpus = agent::member(document, "gpus");
  view.libcuda = agent::flagMember(agent::member(gpus, "libcuda"), "found");
  view.libcudaDetail = agent::textMember(agent::member(gpus, "libcuda"), "detail");
  view.cudaStatus = smallNumber(agent::member(gpus, "libcuda"), "status");
  view.cudaProblem = parseCudaProblem(agent::textMember(agent::member(gpus, "libcuda"), "code"));
  view.peerMemory = agent::flagMember(agent::member(gpus, "nvidia_peermem"), "loaded");
  view.peerMemoryLoadable = agent::flagMember(agent::member(gpus, "nvidia_peermem"), "loadable");
  for (const Json& each : agent::listMember(gpus, "devices")) {
    const Json& direct = agent::member(each, "gpudirect_rdma_supported");
    const Json& mig = agent::member(each, "mig");
    view.gpus.push_back({agent::textMember(each, "name"), agent::textMember(each, "pci"),
                         isOne(agent::member(each, "dma_buf_supported")),
                         smallNumber(each, "index"),
                         direct.is_number_integer() ? std::optional(isOne(direct)) : std::nullopt,
                         agent::flagMember(mig, "enabled"), smallNumber(mig, "instances")});
  }
  for (const Json& each : agent::listMember(document, "distances")) {
    view.distances.push_back({agent::textMember(each, "nic"), agent::textMember(each, "gpu"),
                              agent::textMember(each, "distance")});
  }
}

}  // namespace

const GuestGid* chosenGid(const GuestPort& port) {
  const auto found = std::ranges::find_if(port.gids, [&](const GuestGid& each) {
    return port.gidIndex && each.index == port.gidIndex;
  });
  return found == port.gids.end() ? nullptr : &*found;
}

GuestView readGuestView(const Json& document) {
  GuestView view;
  for (const Json& each : agent::listMember(document, "netdevs")) {
    view.netdevs.push_back({agent::textMember(each, "name"), agent::textMember(each, "mac"),
                            agent::textMember(each, "state"), agent::textMember(each, "pci"),
                            agent::textMember(each, "driver"), unsignedNumber(each, "mtu")});
  }
  // PCI functions: those without a driver, and each one's place and services.
  for (const Json& each : agent::listMember(document, "pci")) {
    if (agent::textMember(each, "driver").empty()) {
      view.withoutDriver.push_back(readFunction(each));
    }
    if (GuestPath path = readPath(agent::textMember(each, "path")); !path.empty()) {
      view.functions.push_back(std::move(path));
    }
    const Json& ats = agent::member(each, "ats");
    view.services[agent::textMember(each, "address")] = {
        present(agent::member(each, "acs")), present(ats), agent::flagMember(ats, "enabled")};
  }
  // RDMA libraries and devices.
  const Json& rdma = agent::member(document, "rdma");
  view.libibverbs = agent::flagMember(agent::member(rdma, "libibverbs"), "found");
  view.libibverbsDetail = agent::textMember(agent::member(rdma, "libibverbs"), "detail");
  view.librdmacm = agent::flagMember(agent::member(rdma, "librdmacm"), "found");
  for (const Json& each : agent::listMember(rdma, "devices")) {
    view.rdmaDevices.push_back(readRdmaDevice(each));
  }
  readGpus(document, view);
  // SELinux: only a context that confines the probe counts.
  const Json& selinux = agent::member(document, "selinux");
  const std::string context = agent::textMember(selinux, "context");
  if (agent::isConfined(context) && agent::member(selinux, "enforcing") != Json(false)) {
    view.confinedAs = context;
  }
  return view;
}

const GuestPort* findPort(const GuestView& view, const std::string& device, int number) {
  for (const auto& each : view.rdmaDevices) {
    const auto found = std::ranges::find(each.ports, number, &GuestPort::number);
    if (each.name == device && found != each.ports.end()) {
      return &*found;
    }
  }
  return nullptr;
}

std::optional<PciAddress> functionAtPath(const GuestView& view,
                                         const std::vector<PciAddress>& place) {
  const auto samePlace = [](const PciAddress& one, const PciAddress& other) {
    return one.slot == other.slot && one.function == other.function;
  };
  const auto found = std::ranges::find_if(view.functions, [&](const GuestPath& each) {
    return !place.empty() && each.front().domain == place.front().domain &&
           each.front().bus == place.front().bus && std::ranges::equal(each, place, samePlace);
  });
  return found == view.functions.end() ? std::nullopt : std::optional(found->back());
}

}  // namespace vfpass::verify
