#include "system/pci_functions.hpp"

#include <algorithm>
#include <charconv>
#include <sstream>

#include "vfpass/base/text.hpp"

namespace vfpass::probe {
namespace {

constexpr std::size_t wholeSpace = 4096;

std::uint64_t hexNumber(std::string_view text) {
  return parseNumber(text.starts_with("0x") ? text.substr(2) : text, 16).value_or(0);
}

/// A line of `resource` is: first address, last address, flags. The first six lines are BARs.
std::vector<std::uint64_t> barSizes(const std::string& resource) {
  constexpr std::size_t barCount = 6;
  std::vector<std::uint64_t> sizes;
  for (const std::string& line : splitLines(resource)) {
    std::istringstream words(line);
    std::string first;
    std::string last;
    if (sizes.size() == barCount || !(words >> first >> last)) {
      break;
    }
    const std::uint64_t end = hexNumber(last);
    sizes.push_back(end == 0 ? 0 : end - hexNumber(first) + 1);
  }
  return sizes;
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
  function.bars = barSizes(sysfs.textOrEmpty(folder + "/resource"));
  function.config = sysfs.bytes(folder + "/config", wholeSpace);
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
