#include "vfpass/host/find_holders.hpp"

#include <fcntl.h>

#include <algorithm>
#include <utility>

#include "holders/holder_kinds.hpp"
#include "holders/link_survey.hpp"
#include "holders/mount_table.hpp"
#include "holders/processes.hpp"
#include "netlink/network_namespaces.hpp"
#include "vfpass/base/pci_files.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/host/pci_function.hpp"

namespace vfpass::host {
namespace {

using std::chrono::milliseconds;

std::vector<FunctionFacts> readFacts(const Root& root, const std::vector<PciAddress>& functions) {
  std::vector<FunctionFacts> facts;
  for (const PciAddress& address : functions) {
    if (auto function = readFunctionFacts(root, address)) {
      facts.push_back(std::move(*function));
    }
  }
  return facts;
}

// A function without a driver, or bound to VFIO, has neither netdev nor disk.
bool anyDriven(const std::vector<FunctionFacts>& functions) {
  return std::ranges::any_of(functions, isDriven);
}

void append(std::vector<Holder>& holders, std::vector<Holder> more) {
  holders.insert(holders.end(), std::make_move_iterator(more.begin()),
                 std::make_move_iterator(more.end()));
}

// Holders of all kinds that involve a host driver.
std::vector<Holder> hostHolders(const Root& root, const std::vector<FunctionFacts>& functions,
                                const ProcessList& list, milliseconds deadline) {
  const MountTable mounts(root, list.processes);
  const LinkSurvey links = surveyLinks(root, list.processes, mounts, deadline);
  std::vector<Holder> holders = rdmaHolders(root, functions, list.processes, deadline);
  append(holders, deviceFileHolders(root, functions, list.processes));
  const RdmaVisibility rdma = readRdmaVisibility(root, deadline);
  for (const FunctionFacts& function : functions) {
    if (!isDriven(function)) {
      continue;
    }
    append(holders, netdevHolders(function, links));
    append(holders, blockHolders(root, function, mounts, list.processes));
    append(holders, unknownHolders(function, links, rdma));
  }
  return holders;
}

// Sorts by the order of the functions, then by kind, and removes duplicates.
void sortLike(const std::vector<PciAddress>& functions, std::vector<Holder>& holders) {
  const auto place = [&](const Holder& holder) {
    return std::pair(std::ranges::find(functions, holder.device) - functions.begin(), holder.kind);
  };
  std::ranges::stable_sort(holders, {}, place);
  holders.erase(std::unique(holders.begin(), holders.end()), holders.end());
}

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

std::vector<Holder> findHolders(const Root& root, const std::vector<PciAddress>& functions,
                                milliseconds deadline) {
  std::vector<Holder> holders;
  if (!root.isLive() || functions.empty()) {
    return holders;
  }
  const auto facts = readFacts(root, functions);
  ProcessList list = readProcesses(root);
  auto hidden = openWithoutProcess(root, facts, list);
  if (!hidden.empty()) {
    waitUntilClosed(root, hidden);
    list = readProcesses(root);
    hidden = openWithoutProcess(root, facts, list);
  }
  for (const FunctionFacts& function : facts) {
    append(holders, processHolders(root, function, list));
    if (const auto found = hidden.find(function.address); found != hidden.end()) {
      holders.push_back(hiddenHolder(function.address, found->second, list.unread));
    }
  }
  if (anyDriven(facts)) {
    append(holders, hostHolders(root, facts, list, deadline));
  }
  sortLike(functions, holders);
  return holders;
}

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
