#include "sysfs/device_identity.hpp"

#include "sysfs/pci_function.hpp"

namespace vfpass::host {

std::string devicePath(const Root& root, const PciAddress& address) {
  constexpr std::string_view marker = "/devices/";
  const std::string target = root.linkTarget(functionPath(address)).value_or("");
  const auto start = target.find(marker);
  return start == std::string::npos ? std::string{} : target.substr(start + marker.size());
}

std::uint16_t readIdentifier(const Root& root, const std::string& path) {
  return static_cast<std::uint16_t>(root.readNumber(path).value_or(0) & 0xffffU);
}

int readNumaNode(const Root& root, const std::string& path) {
  // "-1" where the firmware does not specify it; readNumber rejects the sign.
  const auto node = root.readNumber(path + "/numa_node");
  return node && *node < 4096 ? static_cast<int>(*node) : -1;
}

}  // namespace vfpass::host
