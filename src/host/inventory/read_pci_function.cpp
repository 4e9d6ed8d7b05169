#include "read_pci_function.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <map>

#include "vfpass/base/pci_files.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/host/pci_function.hpp"
#include "vfpass/pci_address.hpp"
#include "vfpass/topology.hpp"

namespace vfpass::inventory {
namespace {

// Base classes and subclasses of the PCI Code and ID Assignment Specification.
constexpr unsigned networkBase = 0x02;
constexpr unsigned displayBase = 0x03;
constexpr unsigned display3d = 0x0302;
constexpr std::uint8_t intelGraphicsSlot = 2;
constexpr std::uint8_t earlyAmdSlot = 1;

// Vendors of GPUs that compute. A board's management controller is a VGA display as well, most
// often of ASPEED or Matrox, on old boards of ATI: ES1000 and RN50.
bool isOfGpuVendor(const Device& function) {
  constexpr std::array<std::uint16_t, 3> vendors{nvidia, amdGraphics, intel};
  constexpr std::array<std::uint16_t, 2> onBoards{0x515e, 0x5969};
  const bool onBoard = function.vendor == amdGraphics &&
                       std::ranges::find(onBoards, function.device) != onBoards.end();
  return std::ranges::find(vendors, function.vendor) != vendors.end() && !onBoard;
}

FunctionRole bridgeRole(const std::optional<PortType>& port) {
  if (!port) {
    return FunctionRole::bridge;
  }
  switch (*port) {
    case PortType::rootPort:
      return FunctionRole::rootPort;
    case PortType::upstreamPort:
      return FunctionRole::upstreamPort;
    case PortType::downstreamPort:
      return FunctionRole::downstreamPort;
    default:
      return FunctionRole::bridge;
  }
}

bool sharesSlot(const Device& one, const Device& other) {
  PciAddress slot = other.address;
  slot.function = one.address.function;
  return slot == one.address;
}

bool isPartOfProcessor(const Topology& topology, const Device& function) {
  if (function.classCode >> 16U != displayBase) {
    // Intel's NPU on the root bus. Any other accelerator is a GPU, even if it shares a package with
    // a processor.
    return function.vendor == intel && !function.parent;
  }
  if (function.vendor == intel) {
    return !function.parent && function.address.slot == intelGraphicsSlot;
  }
  if (function.vendor == amdGraphics && !function.parent && function.address.slot == earlyAmdSlot) {
    return true;
  }
  return function.vendor == amdGraphics &&
         std::ranges::any_of(topology.functions, [&](const Device& other) {
           return other.vendor == amdProcessor && sharesSlot(function, other);
         });
}

}  // namespace

FunctionRole roleOf(const Device& function, const std::optional<PortType>& port) {
  const unsigned base = function.classCode >> 16U;
  const unsigned subclass = function.classCode >> 8U;
  if (isPciBridge(function.classCode)) {
    return bridgeRole(port);
  }
  if (isNvSwitch(function)) {
    return FunctionRole::nvswitch;
  }
  if (host::isDisplayOrAccelerator(function.classCode) &&
      (subclass == display3d || isOfGpuVendor(function))) {
    return FunctionRole::gpu;
  }
  return base == networkBase || function.driver == "mlx5_core" ? FunctionRole::nic
                                                               : FunctionRole::other;
}

// A bridge on the root bus is a root port. Below a root port or a downstream port it is a switch's
// upstream port, and below an upstream port it is a downstream port.
void guessPorts(Topology& topology) {
  std::vector<std::size_t> order(topology.functions.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    order[i] = i;
  }
  std::sort(order.begin(), order.end(), [&](std::size_t one, std::size_t other) {
    return topology.functions[one].path.size() < topology.functions[other].path.size();
  });
  for (const std::size_t i : order) {  // a parent's path is shorter than its children's
    Device& function = topology.functions[i];
    const FunctionRole above =
        function.parent ? topology.functions[*function.parent].role : FunctionRole::other;
    if (function.role == FunctionRole::rootPort && above == FunctionRole::upstreamPort) {
      function.role = FunctionRole::downstreamPort;
    }
    if (function.role != FunctionRole::bridge) {
      continue;
    }
    if (!function.parent) {
      function.role = FunctionRole::rootPort;
    } else if (above == FunctionRole::upstreamPort) {
      function.role = FunctionRole::downstreamPort;
    } else if (above == FunctionRole::rootPort || above == FunctionRole::downstreamPort) {
      function.role = FunctionRole::upstreamPort;
    }
  }
}

void dropIntegratedGraphics(Topology& topology) {
  for (Device& function : topology.functions) {
    if (function.role == FunctionRole::gpu && isPartOfProcessor(topology, function)) {
      function.role = FunctionRole::other;
    }
  }
}

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
  port.linkLayer = host::parseLinkLayer(reader.word(path + "/link_layer"));
  port.rate = thousandfold(reader.word(path + "/rate"), 100000);
  return port;
}

void readRdma(const host::Folder& folder, const Reader& reader, RdmaDevice& device) {
  const std::string path = "infiniband/" + device.name;
  device.nodeGuid = reader.word(path + "/node_guid");
  device.firmware = reader.word(path + "/fw_ver");
  for (const std::string& number : folder.list(path + "/ports")) {
    if (device.ports.size() < portLimit) {
      device.ports.push_back(readPort(reader, path + "/ports/" + number, number));
    }
  }
}

/// Netdevs and RDMA devices of a function, with state, rate, GUID and firmware. For a VF only their
/// names: reading a port's state is a firmware command, and there can be a thousand VFs.
void readPorts(const host::Folder& folder, bool isVf, Device& function,
               std::vector<TopologyProblem>& problems) {
  if (function.driver.empty() || function.role == FunctionRole::gpu ||
      function.role == FunctionRole::nvswitch || function.driver == "vfio-pci") {
    return;  // saves two system calls for most functions of a host
  }
  const host::Ports ports = isVf ? host::Ports::names : host::Ports::netdevs;
  host::readDevice(folder, {.driver = false, .ports = ports}, function);
  const Reader reader(folder, function.address, problems);
  for (RdmaDevice& device : function.rdma) {
    if (!isVf) {
      readRdma(folder, reader, device);
    }
  }
  // NICs whose driver has another class: virtio.
  if (function.role == FunctionRole::other && !function.netdevs.empty()) {
    function.role = FunctionRole::nic;
  }
}

constexpr std::size_t configHeader = 256;  // everything before PCI Express's extended space

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

}  // namespace

bool readFacts(const host::Folder& folder, bool isVf, Device& function,
               std::vector<TopologyProblem>& problems) {
  if (!folder) {
    return false;
  }
  const bool hasUevent = readUevent(folder, function, problems);
  host::readDevice(folder,
                   {.driver = !hasUevent,
                    .ids = !hasUevent,
                    .subsystem = !hasUevent,
                    .numaNode = !isVf,
                    .iommuGroup = true},
                   function);
  // A VF's link registers read as zero: the link is its PF's.
  const auto port = isVf ? std::nullopt : readPcie(folder, function);
  function.role = roleOf(function, port);
  if (isBridge(function)) {
    return true;
  }
  if (!isVf) {
    function.totalVfs = host::readSriovField(folder, "sriov_totalvfs");
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
