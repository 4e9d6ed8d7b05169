#include "read_pci_function.hpp"

#include <net/if.h>

#include <array>
#include <charconv>
#include <cstdint>
#include <map>

#include "function_role.hpp"
#include "vfpass/base/pci_capability.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/host/root.hpp"
#include "vfpass/topology.hpp"

namespace vfpass::inventory {
namespace {

constexpr std::size_t wordLimit = 64;  // GUIDs, states and versions are shorter
constexpr std::size_t portLimit = 256;

// The short text files of a port; reports those that are too long.
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

// The number at the beginning of `400 Gb/sec (4X NDR)`, `2.5 GT/s` or `32.0 GT/s PCIe`, times 1000;
// 0 for `Unknown` and for numbers over `limit`.
unsigned thousandfold(std::string_view text, unsigned limit) {
  unsigned whole = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), whole);
  if (error != std::errc() || whole > limit) {
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
  port.rate = thousandfold(reader.word(path + "/rate"), 100000);
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

/// Netdevs and RDMA devices of a function, with state, rate, GUID and firmware. For a VF only their
/// names: reading a port's state is a firmware command, and there can be a thousand VFs.
void readPorts(const host::Folder& folder, bool isVf, Device& function,
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

constexpr std::size_t configHeader = 256;  // everything before PCI Express's extended space
constexpr int nodeLimit = 4096;

std::uint16_t identifier(std::string_view text) {
  return static_cast<std::uint16_t>(parseNumber(text, 16).value_or(0) & 0xffffU);
}

void takeIdentifiers(std::string_view pair, std::uint16_t& first, std::uint16_t& second) {
  const auto colon = pair.find(':');
  if (colon != std::string_view::npos) {
    first = identifier(pair.substr(0, colon));
    second = identifier(pair.substr(colon + 1));
  }
}

// One file with most of the identity (drivers/pci/pci-driver.c, pci_uevent).
bool readUevent(const host::Folder& folder, Device& function,
                std::vector<TopologyProblem>& problems) {
  const auto text = folder.readText("uevent");
  bool hasClass = false;
  for (const std::string& line : splitLines(text.value_or(""))) {
    const std::string_view all = line;
    const auto equals = all.find('=');
    const auto key = all.substr(0, equals);
    const auto value = equals == std::string_view::npos ? "" : all.substr(equals + 1);
    if (key == "DRIVER") {
      function.driver = value;
    } else if (key == "PCI_CLASS") {
      function.classCode =
          static_cast<std::uint32_t>(parseNumber(value, 16).value_or(0) & 0xffffffU);
      hasClass = true;
    } else if (key == "PCI_ID") {
      takeIdentifiers(value, function.vendor, function.device);
    } else if (key == "PCI_SUBSYS_ID") {
      takeIdentifiers(value, function.subsystemVendor, function.subsystemDevice);
    } else if (key == "PCI_SLOT_NAME" && value != toString(function.address)) {
      problems.push_back(
          {toString(function.address), "its uevent file names " + std::string(value)});
    }
  }
  return hasClass;
}

void readIdentity(const host::Folder& folder, Device& function,
                  std::vector<TopologyProblem>& problems) {
  if (readUevent(folder, function, problems)) {
    return;
  }
  const auto number = [&](const char* file) { return folder.readNumber(file).value_or(0); };
  function.vendor = static_cast<std::uint16_t>(number("vendor") & 0xffffU);
  function.device = static_cast<std::uint16_t>(number("device") & 0xffffU);
  function.subsystemVendor = static_cast<std::uint16_t>(number("subsystem_vendor") & 0xffffU);
  function.subsystemDevice = static_cast<std::uint16_t>(number("subsystem_device") & 0xffffU);
  function.classCode = static_cast<std::uint32_t>(number("class") & 0xffffffU);
  function.driver = folder.linkName("driver").value_or("");
}

PcieLink readLink(const host::Folder& folder, const std::string& which) {
  PcieLink link;
  link.speed = thousandfold(folder.readText(which + "_link_speed").value_or(""), 1000);
  const auto width = folder.readNumber(which + "_link_width").value_or(0);
  link.width = width <= 32 ? static_cast<unsigned>(width) : 0;  // 255: unknown
  return link;
}

// Configuration space has everything in one read. Without root only its header is readable; then
// the kernel's own files describe the link, but not the port type.
std::optional<PortType> readPcie(const host::Folder& folder, Device& function) {
  if (const auto found = findPcieCapability(folder.readBytes("config", 0, configHeader))) {
    function.link = found->link;
    function.best = found->best;
    return found->type;
  }
  function.best = readLink(folder, "max");
  if (function.best.width != 0) {
    function.link = readLink(folder, "current");
  }
  return std::nullopt;
}

void readPlacement(const host::Folder& folder, bool isVf, Device& function) {
  const auto group = folder.linkName("iommu_group");
  const auto number = group ? parseNumber(*group) : std::nullopt;
  if (number && *number <= INT32_MAX) {
    function.iommuGroup = static_cast<unsigned>(*number);
  }
  if (!isVf) {
    // "-1" if the firmware does not set it; readNumber accepts no sign.
    const auto node = folder.readNumber("numa_node");
    function.numaNode = node && *node < nodeLimit ? static_cast<int>(*node) : -1;
  }
}

}  // namespace

bool readFacts(const host::Folder& folder, bool isVf, Device& function,
               std::vector<TopologyProblem>& problems) {
  if (!folder) {
    return false;
  }
  readIdentity(folder, function, problems);
  readPlacement(folder, isVf, function);
  // A VF's link registers read as zero: the link is its PF's.
  const auto port = isVf ? std::nullopt : readPcie(folder, function);
  function.role = roleOf(function, port);
  if (isBridge(function)) {
    return true;
  }
  if (!isVf) {
    function.totalVfs = static_cast<unsigned>(
        std::min<std::uint64_t>(folder.readNumber("sriov_totalvfs").value_or(0), 65535));
  }
  readPorts(folder, isVf, function, problems);
  return true;
}

namespace {

// Registers of the capability (PCI Express Base Specification, 7.5.3).
constexpr std::size_t linkCapabilities = 0x0c;
constexpr std::size_t linkStatus = 0x12;

// In both link registers, bits 3:0 encode the speed and bits 9:4 the number of lanes.
PcieLink linkIn(unsigned bits) {
  constexpr std::array<unsigned, 7> speeds{0, 2500, 5000, 8000, 16000, 32000, 64000};
  const unsigned code = bits & 0xfU;
  return {code < speeds.size() ? speeds[code] : 0, bits >> 4U & 0x3fU};
}

}  // namespace

std::optional<PcieCapability> findPcieCapability(std::string_view config) {
  const auto at = findCapability(config, pciExpress);
  const auto flags = at ? configWord(config, *at + 2) : std::nullopt;
  const auto best = at ? configWord(config, *at + linkCapabilities) : std::nullopt;
  const auto now = at ? configWord(config, *at + linkStatus) : std::nullopt;
  if (!flags || !best || !now) {
    return std::nullopt;
  }
  return PcieCapability{static_cast<PortType>(*flags >> 4U & 0xfU), linkIn(*now), linkIn(*best)};
}

}  // namespace vfpass::inventory
