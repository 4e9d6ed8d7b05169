#include "holders/holder_kinds.hpp"

#include "vfpass/base/pci_files.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/host/find_holders.hpp"
#include "vfpass/host/pci_function.hpp"

namespace vfpass::host {
namespace {

constexpr std::uint32_t networkClass = 0x02;
constexpr std::size_t deviceLimit = 16;
constexpr std::size_t longestDeviceName = 64;

bool isName(const std::string& text) {
  return !text.empty() && text != "." && text != ".." && text.find('/') == std::string::npos;
}

// Identified by class, driver, or netdevs, or as a VF of a function with a netdev: some VFs have a
// different class.
bool isNetwork(const Root& root, const Device& function) {
  return function.classCode >> 16U == networkClass || function.driver == "mlx5_core" ||
         !function.netdevs.empty() ||
         (function.physicalFunction && !readNetdevs(root, *function.physicalFunction).empty());
}

std::vector<RdmaDevice> readVisibleRdma(const Root& root, const PciAddress& address) {
  std::vector<RdmaDevice> devices;
  const std::string directory = "sys/class/infiniband/";
  for (const std::string& name : root.list(directory)) {
    if (lastFunctionOnPath(root.linkTarget(directory + name).value_or("")) == address) {
      devices.push_back({name});
    }
  }
  return devices;
}

// Adds the devices of a bus, such as vdpa or mdev, that were created on this function.
void addMembers(const Root& root, const PciAddress& address, const std::string& bus,
                const std::string& what, std::vector<std::string>& devices) {
  for (const std::string& name : root.list("sys/bus/" + bus + "/devices")) {
    if (devices.size() < deviceLimit && functionOfDevice(root, bus, name) == address) {
      devices.push_back(what + " " + printable(name.substr(0, longestDeviceName)));
    }
  }
}

}  // namespace

std::optional<FunctionFacts> readFunctionFacts(const Root& root, const PciAddress& address) {
  const Folder folder(root, functionPath(address));
  if (!folder) {
    return std::nullopt;
  }
  FunctionFacts function;
  function.address = address;
  function.path = devicePath(root, address);
  readDevice(folder, {.ids = true}, function);
  function.physicalFunction = readPfOf(root, address);
  if (isDriven(function)) {
    readDevice(folder, {.driver = false, .ports = Ports::netdevs, .linkLayer = true}, function);
    function.isNetwork = isNetwork(root, function);
    function.rdma = readVisibleRdma(root, address);
    addMembers(root, address, "vdpa", "vDPA device", function.virtualDevices);
    addMembers(root, address, "mdev", "mediated device", function.virtualDevices);
  }
  return function;
}

bool isDriven(const Device& function) {
  return !function.driver.empty() && !isVfioDriver(function.driver);
}

std::optional<PciAddress> functionOfDevice(const Root& root, const std::string& bus,
                                           const std::string& name) {
  if (!isName(bus) || !isName(name)) {
    return std::nullopt;
  }
  if (bus == "pci") {
    return parsePciAddress(name);
  }
  return lastFunctionOnPath(root.linkTarget("sys/bus/" + bus + "/devices/" + name).value_or(""));
}

std::optional<PciAddress> lastFunctionOnPath(std::string_view path) {
  constexpr std::size_t shortestAddress = 12;  // the kernel always writes the domain
  while (!path.empty()) {
    const auto slash = path.rfind('/');
    const std::string_view name = slash == std::string_view::npos ? path : path.substr(slash + 1);
    if (name.size() >= shortestAddress) {
      if (const auto address = parsePciAddress(name)) {
        return address;
      }
    }
    path = slash == std::string_view::npos ? std::string_view{} : path.substr(0, slash);
  }
  return std::nullopt;
}

}  // namespace vfpass::host
