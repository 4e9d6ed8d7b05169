#include "guest_view.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <limits>
#include <sstream>

#include "vfpass/agent/agent.hpp"
#include "vfpass/base/json_reader.hpp"
#include "vfpass/base/text.hpp"

namespace vfpass::verify {
namespace {

using Json = nlohmann::json;

std::optional<int> smallNumber(const JsonReader& value) {
  return value.numberOrNone<int>(std::numeric_limits<std::uint16_t>::max());
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

void readSubnet(const JsonReader& json, GuestPort& port) {
  constexpr std::size_t most = 256;
  port.localId = hexNumber(json["lid"].textOr(""));
  port.managerId = hexNumber(json["sm_lid"].textOr(""));
  port.partitionsReported = json["p_keys"].json().is_array();
  for (const JsonReader& each : json["p_keys"].listOrEmpty()) {
    const auto key = hexNumber(each.textOr(""));
    if (key && port.partitions.size() < most) {
      port.partitions.push_back(*key);
    }
  }
}

// At most as many as the probe reports.
std::map<std::string, std::uint64_t> readCounters(const JsonReader& json) {
  constexpr std::size_t most = 256;
  std::map<std::string, std::uint64_t> counters;
  if (!json.json().is_object()) {
    return counters;
  }
  for (const auto& [name, each] : json.json().items()) {
    const auto value = JsonReader(each).numberOrNone<std::uint64_t>();
    if (value && counters.size() < most) {
      counters[name] = *value;
    }
  }
  return counters;
}

GuestPort readPort(const JsonReader& json) {
  GuestPort port;
  port.number = smallNumber(json["number"]).value_or(1);
  port.state = json["state"].textOr("");
  port.rate = json["rate"].textOr("");
  port.linkLayer = json["link_layer"].textOr("");
  port.gidIndex = smallNumber(json["gid_index"]);
  readSubnet(json, port);
  port.counters = readCounters(json["counters"]);
  for (const JsonReader& each : json["ip_addresses"].listOrEmpty()) {
    if (each.json().is_string()) {
      port.ipAddresses.push_back(each.textOr(""));
    }
  }
  // A string, as the probe passes on the library's name for the MTU.
  const auto mtu = parseNumber(json["active_mtu"].textOr(""));
  if (mtu && *mtu <= std::numeric_limits<std::uint16_t>::max()) {
    port.activeMtu = static_cast<unsigned>(*mtu);
  }
  for (const JsonReader& gid : json["gids"].listOrEmpty()) {
    port.gids.push_back({gid["gid"].textOr(""), smallNumber(gid["index"]), gid["type"].textOr(""),
                         gid["netdev"].textOr("")});
  }
  return port;
}

GuestRdmaDevice readRdmaDevice(const JsonReader& json) {
  const JsonReader opens = json["opens"];
  GuestRdmaDevice device{json["name"].textOr(""),
                         json["node_guid"].textOr(""),
                         json["pci"].textOr(""),
                         json["parent"].textOr(""),
                         opens["done"].flagOr(false),
                         opens["detail"].textOr(""),
                         json["dma_buf"]["supported"].flagOrNone(),
                         json["dma_buf"]["detail"].textOr(""),
                         {}};
  for (const JsonReader& port : json["ports"].listOrEmpty()) {
    device.ports.push_back(readPort(port));
  }
  return device;
}

GuestFunction readFunction(const JsonReader& json) {
  constexpr unsigned networkClass = 0x02;
  return {json["address"].textOr(""), json["vendor"].numberOr(0), json["device"].numberOr(0),
          json["class"].numberOr(0) >> 16U == networkClass};
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

std::optional<PciePackets> readPackets(const JsonReader& json) {
  constexpr unsigned largest = 4096;
  const auto payload = json["max_payload"].numberOrNone<unsigned>(largest);
  const auto supported = json["max_payload_supported"].numberOrNone<unsigned>(largest);
  const auto readRequest = json["max_read_request"].numberOrNone<unsigned>(largest);
  return payload && supported && readRequest
             ? std::optional(PciePackets{*payload, *supported, *readRequest, true})
             : std::nullopt;
}

// The CUDA driver reports 1 for true.
std::optional<bool> isOne(const JsonReader& value) {
  const Json& json = value.json();
  return json.is_number_integer() ? std::optional(json == 1) : std::nullopt;
}

std::vector<GuestBar> readBars(const JsonReader& json) {
  constexpr std::size_t most = 6;
  std::vector<GuestBar> bars;
  for (const JsonReader& each : json.listOrEmpty()) {
    const auto number = each["number"].numberOrNone<int>(most - 1);
    const auto assigned = each["assigned"].flagOrNone();
    if (number && assigned && bars.size() < most) {
      bars.push_back({*number, each["bytes"].numberOr(0), *assigned});
    }
  }
  return bars;
}

void readGpus(const JsonReader& document, GuestView& view) {
  const JsonReader gpus = document["gpus"];
  view.libcuda = gpus["libcuda"]["found"].flagOr(false);
  view.libcudaDetail = gpus["libcuda"]["detail"].textOr("");
  view.cudaStatus = smallNumber(gpus["libcuda"]["status"]);
  view.cudaProblem = parseCudaProblem(gpus["libcuda"]["code"].textOr(""));
  view.peerMemory = gpus["nvidia_peermem"]["loaded"].flagOr(false);
  view.peerMemoryInterface = gpus["nvidia_peermem"]["interface"].flagOrNone();
  view.kernel = document["kernel"].textOr("");
  view.nvidiaDriver = gpus["driver"].textOr("");
  view.nvidiaVersion = gpus["driver_version"].textOr("");
  view.cudaVersion = gpus["libcuda"]["cuda_version"].numberOrNone<unsigned>();
  view.peerMemoryLoadable = gpus["nvidia_peermem"]["loadable"].flagOr(false);
  for (const JsonReader& each : gpus["devices"].listOrEmpty()) {
    const JsonReader mig = each["mig"];
    view.gpus.push_back({each["name"].textOr(""), each["pci"].textOr(""),
                         isOne(each["dma_buf_supported"]).value_or(false),
                         smallNumber(each["index"]), isOne(each["gpudirect_rdma_supported"]),
                         mig["enabled"].flagOr(false), smallNumber(mig["instances"]),
                         each["memory_bytes"].numberOrNone<std::uint64_t>(),
                         readBars(each["bars"])});
  }
  for (const JsonReader& each : document["distances"].listOrEmpty()) {
    view.distances.push_back(
        {each["nic"].textOr(""), each["gpu"].textOr(""), each["distance"].textOr("")});
  }
}

// null: no limit.
std::optional<std::uint64_t> readLimit(const JsonReader& value) {
  const bool none = !value.isMissing() && value.json().is_null();
  return none ? std::optional(UINT64_MAX) : value.numberOrNone<std::uint64_t>();
}

GuestMemoryLimit readMemoryLimit(const JsonReader& json) {
  return {readLimit(json["soft"]), readLimit(json["hard"]), json["file"].textOr(""),
          json["who"].textOr("")};
}

std::optional<GuestMemoryLock> readMemoryLock(const JsonReader& json) {
  constexpr std::size_t most = 16;
  if (!json.json().is_object()) {
    return std::nullopt;
  }
  GuestMemoryLock lock{readMemoryLimit(json["login"]),
                       {},
                       readMemoryLimit(json["services"]),
                       json["memory_bytes"].numberOrNone<std::uint64_t>()};
  for (const JsonReader& each : json["login_others"].listOrEmpty()) {
    if (lock.loginOfOthers.size() < most) {
      lock.loginOfOthers.push_back(readMemoryLimit(each));
    }
  }
  return lock;
}

// A name that a remedy may contain.
bool isPlainName(const std::string& text) {
  constexpr std::size_t longest = 64;
  return !text.empty() && text.size() <= longest && std::ranges::all_of(text, [](char each) {
    return std::isalnum(static_cast<unsigned char>(each)) != 0 ||
           std::string_view("._+~-").find(each) != std::string_view::npos;
  });
}

std::optional<std::vector<GuestKernel>> readKernels(const JsonReader& json) {
  constexpr std::size_t most = 16;
  if (!json.json().is_array()) {
    return std::nullopt;
  }
  std::vector<GuestKernel> kernels;
  for (const JsonReader& each : json.listOrEmpty()) {
    GuestKernel kernel{each["release"].textOr(""), std::nullopt};
    if (!isPlainName(kernel.release) || kernels.size() == most) {
      continue;
    }
    if (each["missing"].json().is_array()) {
      kernel.missing.emplace();
    }
    for (const JsonReader& module : each["missing"].listOrEmpty()) {
      const std::string name = module.textOr("");
      if (kernel.missing->size() < most) {
        kernel.missing->push_back(isPlainName(name) ? name : "?");
      }
    }
    kernels.push_back(std::move(kernel));
  }
  return kernels;
}

// At most as much as the probe reports. A line that ends within a character is escaped.
std::vector<std::string> readKernelLog(const JsonReader& json) {
  constexpr std::size_t mostLines = 48;
  constexpr std::size_t longest = 256;
  std::vector<std::string> lines;
  for (const JsonReader& each : json.listOrEmpty()) {
    if (lines.size() < mostLines) {
      lines.push_back(printable(each.textOr("").substr(0, longest)));
    }
  }
  return lines;
}

}  // namespace

const GuestGid* chosenGid(const GuestPort& port) {
  const auto found = std::ranges::find_if(port.gids, [&](const GuestGid& each) {
    return port.gidIndex && each.index == port.gidIndex;
  });
  return found == port.gids.end() ? nullptr : &*found;
}

GuestView readGuestView(const Json& json) {
  const JsonReader document(json);
  GuestView view;
  for (const JsonReader& each : document["netdevs"].listOrEmpty()) {
    view.netdevs.push_back({each["name"].textOr(""), each["mac"].textOr(""),
                            each["state"].textOr(""), each["pci"].textOr(""),
                            each["driver"].textOr(""), each["mtu"].numberOrNone<std::uint16_t>()});
  }
  // PCI functions: those without a driver, and each one's place and services.
  for (const JsonReader& each : document["pci"].listOrEmpty()) {
    if (each["driver"].textOr("").empty()) {
      view.withoutDriver.push_back(readFunction(each));
    }
    if (GuestPath path = readPath(each["path"].textOr("")); !path.empty()) {
      view.functions.push_back(std::move(path));
    }
    const JsonReader ats = each["ats"];
    view.services[each["address"].textOr("")] = {
        each["acs"]["present"].flagOrNone(), ats["present"].flagOrNone(),
        ats["enabled"].flagOr(false), readPackets(each["express"])};
  }
  // RDMA libraries and devices.
  const JsonReader rdma = document["rdma"];
  view.libibverbs = rdma["libibverbs"]["found"].flagOr(false);
  view.libibverbsDetail = rdma["libibverbs"]["detail"].textOr("");
  view.librdmacm = rdma["librdmacm"]["found"].flagOr(false);
  for (const JsonReader& each : rdma["devices"].listOrEmpty()) {
    view.rdmaDevices.push_back(readRdmaDevice(each));
  }
  readGpus(document, view);
  if (const JsonReader nccl = document["nccl"]; nccl.json().is_object()) {
    const auto index = nccl["gid_index"].numberOrNone<std::uint64_t>();
    constexpr std::uint64_t largest = std::numeric_limits<unsigned>::max();
    view.nccl = GuestNccl{};
    if (index) {
      view.nccl->gidIndex = static_cast<unsigned>(std::min(*index, largest));
    }
  }
  view.kernelLog = readKernelLog(document["kernel_log"]);
  view.newerKernels = readKernels(document["newer_kernels"]);
  view.memoryLock = readMemoryLock(document["memory_lock"]);
  // SELinux: only a context that confines the probe counts.
  const JsonReader selinux = document["selinux"];
  const std::string context = selinux["context"].textOr("");
  if (agent::isConfined(context) && selinux["enforcing"].flagOr(true)) {
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
