#include "system/pci_functions.hpp"

#include <algorithm>
#include <charconv>
#include <sstream>

#include "vfpass/base/pci_files.hpp"
#include "vfpass/base/text.hpp"

namespace vfpass::probe {
namespace {

constexpr std::size_t wholeSpace = 4096;

std::uint64_t hexNumber(std::string_view text) {
  return parseNumber(text.starts_with("0x") ? text.substr(2) : text, 16).value_or(0);
}

constexpr std::size_t firstBar = 0x10;  // in the configuration space

/// Whether the register exists, which its type bits tell even if it has no address: bit 0 for I/O,
/// bits 2 and 3 for 64 bits and prefetchable memory. Others look like an unused one then.
bool existsInConfig(const std::string& config, std::size_t number) {
  const auto low = configWord(config, firstBar + 4 * number);
  return low && (*low & 0xfU) != 0 && *low != 0xffff;  // all ones: the device does not answer
}

bool is64Bit(const std::string& config, std::size_t number) {
  constexpr unsigned typeMask = 0x7;  // memory, 64 bits
  const auto low = configWord(config, firstBar + 4 * number);
  return low && (*low & typeMask) == 0x4;
}

std::vector<PciBar> readBars(const std::string& resource, const std::string& config) {
  std::vector<PciBar> bars;
  const auto resources = readPciResources(resource);
  for (std::size_t number = 0; number < std::min(resources.size(), pciBars); ++number) {
    const auto& [start, bytes, flags] = resources[number];
    if (bytes != 0 || existsInConfig(config, number)) {
      bars.push_back({number, bytes, start != 0});
    }
    number += is64Bit(config, number) ? 1U : 0U;
  }
  return bars;
}

PciFunction readFunction(const SysfsReader& sysfs, const std::string& address) {
  const std::string folder = "/sys/bus/pci/devices/" + address;
  PciFunction function;
  function.address = address;
  function.deviceClass =
      static_cast<std::uint32_t>(hexNumber(sysfs.textOrEmpty(folder + "/class")));
  function.vendor = static_cast<std::uint32_t>(hexNumber(sysfs.textOrEmpty(folder + "/vendor")));
  function.device = static_cast<std::uint32_t>(hexNumber(sysfs.textOrEmpty(folder + "/device")));
  function.driver = sysfs.linkName(folder + "/driver");
  function.path = sysfs.resolved(folder);
  const std::string node = sysfs.textOrEmpty(folder + "/numa_node");
  std::from_chars(node.data(), node.data() + node.size(), function.numaNode);
  function.config = sysfs.bytes(folder + "/config", wholeSpace);
  function.bars = readBars(sysfs.textOrEmpty(folder + "/resource"), function.config);
  return function;
}

/// The parts of a path that are PCI functions or host bridges: `pci0000:00`, `0000:00:01.0`, ...
std::vector<std::string> treeOf(const PciFunction& function) {
  std::vector<std::string> parts;
  std::istringstream path(function.path);
  for (std::string part; std::getline(path, part, '/');) {
    if (part.find(':') != std::string::npos) {
      parts.push_back(part);
    }
  }
  return parts;
}

}  // namespace

std::vector<PciFunction> readPciFunctions(const SysfsReader& sysfs) {
  std::vector<PciFunction> functions;
  for (const std::string& address : sysfs.names("/sys/bus/pci/devices")) {
    functions.push_back(readFunction(sysfs, address));
  }
  return functions;
}

std::string pciDistance(const PciFunction& first, const PciFunction& second) {
  const auto one = treeOf(first);
  const auto other = treeOf(second);
  const auto [left, right] = std::ranges::mismatch(one, other);
  const auto common = left - one.begin();
  if (common <= 1) {
    const bool known = first.numaNode >= 0 && second.numaNode >= 0;
    return known && first.numaNode != second.numaNode ? "SYS" : "PHB";
  }
  // Below the common bridge: one of its ports, and the function.
  constexpr std::ptrdiff_t oneSwitch = 2;
  return one.end() - left <= oneSwitch && other.end() - right <= oneSwitch ? "PIX" : "PXB";
}

}  // namespace vfpass::probe
