#include "read_ports.hpp"

#include <net/if.h>

#include <charconv>

#include "vfpass/base/text.hpp"

namespace vfpass::inventory {
namespace {

constexpr std::size_t wordLimit = 64;  // GUIDs, states and versions are shorter
constexpr std::size_t portLimit = 256;

class Reader {
 public:
  Reader(const host::Folder& folder, const PciAddress& address,
         std::vector<TopologyProblem>& problems)
      : folder_(folder), address_(address), problems_(problems) {}

  std::string word(const std::string& name) const {
    const auto text = folder_.readText(name);
    const std::string_view value = text ? trim(*text) : std::string_view{};
    if (value.size() <= wordLimit) {
      return std::string(value);
    }
    problems_.push_back({toString(address_), name + " is too long; truncated"});
    return std::string(value.substr(0, wordLimit));
  }

 private:
  const host::Folder& folder_;
  const PciAddress& address_;
  std::vector<TopologyProblem>& problems_;
};

Netdev readNetdev(const host::Folder& folder, const std::string& name) {
  const std::string path = "net/" + name;
  Netdev netdev;
  netdev.name = name;
  const auto index = folder.readNumber(path + "/ifindex").value_or(0);
  netdev.index = index <= INT32_MAX ? static_cast<int>(index) : 0;
  netdev.up = (folder.readNumber(path + "/flags").value_or(0) & IFF_UP) != 0;
  netdev.enslaved = folder.linkTarget(path + "/master").has_value();
  return netdev;
}

// `4: ACTIVE`
std::string stateIn(const std::string& text) {
  const auto colon = text.find(": ");
  return colon == std::string::npos ? text : text.substr(colon + 2);
}

// `400 Gb/sec (4X NDR)`, `2.5 Gb/sec (1X SDR)`: in Mbit/s.
unsigned rateIn(std::string_view text) {
  unsigned whole = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), whole);
  if (error != std::errc() || whole > 100000) {
    return 0;
  }
  const bool half = text.substr(static_cast<std::size_t>(end - text.data())).starts_with(".5");
  return whole * 1000 + (half ? 500 : 0);
}

RdmaPort readPort(const Reader& reader, const std::string& path, const std::string& number) {
  RdmaPort port;
  port.number = static_cast<unsigned>(parseNumber(number).value_or(0) & 0xffU);
  port.state = stateIn(reader.word(path + "/state"));
  const std::string layer = reader.word(path + "/link_layer");
  port.linkLayer = layer == "InfiniBand" ? LinkLayer::infiniband
                   : layer == "Ethernet" ? LinkLayer::ethernet
                                         : LinkLayer::unknown;
  port.rate = rateIn(reader.word(path + "/rate"));
  return port;
}

RdmaDevice readRdma(const host::Folder& folder, const Reader& reader, const std::string& name) {
  const std::string path = "infiniband/" + name;
  RdmaDevice device;
  device.name = name;
  device.nodeGuid = reader.word(path + "/node_guid");
  device.firmware = reader.word(path + "/fw_ver");
  for (const std::string& number : folder.list(path + "/ports")) {
    if (device.ports.size() < portLimit) {
      device.ports.push_back(readPort(reader, path + "/ports/" + number, number));
    }
  }
  return device;
}

}  // namespace

void readPorts(const host::Folder& folder, bool isVf, TopologyFunction& function,
               std::vector<TopologyProblem>& problems) {
  if (function.driver.empty() || function.role == FunctionRole::gpu ||
      function.role == FunctionRole::nvswitch || function.driver == "vfio-pci") {
    return;  // saves two system calls for most functions of a host
  }
  const Reader reader(folder, function.address, problems);
  for (const std::string& name : folder.list("net")) {
    function.netdevs.push_back(isVf ? Netdev{name, 0, false, false} : readNetdev(folder, name));
  }
  for (const std::string& name : folder.list("infiniband")) {
    function.rdma.push_back(isVf ? RdmaDevice{name, {}, {}, {}} : readRdma(folder, reader, name));
  }
  // NICs whose driver has another class: virtio.
  if (function.role == FunctionRole::other && !function.netdevs.empty()) {
    function.role = FunctionRole::nic;
  }
}

}  // namespace vfpass::inventory
