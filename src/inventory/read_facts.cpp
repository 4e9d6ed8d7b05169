#include "read_facts.hpp"

#include <charconv>
#include <map>

#include "function_role.hpp"
#include "pci_config.hpp"
#include "read_ports.hpp"
#include "vfpass/base/text.hpp"

namespace vfpass::inventory {
namespace {

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
bool readUevent(const host::Folder& folder, TopologyFunction& function,
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

void readIdentity(const host::Folder& folder, TopologyFunction& function,
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

// `32.0 GT/s PCIe`, `2.5 GT/s`, `Unknown`.
unsigned speedIn(std::string_view text) {
  unsigned whole = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), whole);
  if (error != std::errc() || whole > 1000) {
    return 0;
  }
  const bool half = text.substr(static_cast<std::size_t>(end - text.data())).starts_with(".5");
  return whole * 1000 + (half ? 500 : 0);
}

PcieLink readLink(const host::Folder& folder, const std::string& which) {
  PcieLink link;
  link.speed = speedIn(folder.readText(which + "_link_speed").value_or(""));
  const auto width = folder.readNumber(which + "_link_width").value_or(0);
  link.width = width <= 32 ? static_cast<unsigned>(width) : 0;  // 255: unknown
  return link;
}

// Configuration space has everything in one read. Without root only its header is readable; then
// the kernel's own files describe the link, but not the port type.
std::optional<PortType> readPcie(const host::Folder& folder, TopologyFunction& function) {
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

void readPlacement(const host::Folder& folder, bool isVf, TopologyFunction& function) {
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

bool readFacts(const host::Folder& folder, bool isVf, TopologyFunction& function,
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

}  // namespace vfpass::inventory
