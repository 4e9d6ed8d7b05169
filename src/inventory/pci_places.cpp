#include "pci_places.hpp"

#include <algorithm>
#include <map>
#include <optional>

#include "vfpass/host/root.hpp"

namespace vfpass::inventory {
namespace {

struct Place {
  PciAddress address;
  std::string path;    ///< below /sys/devices
  std::string bridge;  ///< `pci0000:3a`
  std::string above;   ///< second to last component of the path
};

std::vector<std::string_view> components(std::string_view path) {
  std::vector<std::string_view> parts;
  for (std::size_t start = 0; start <= path.size();) {
    const std::size_t end = std::min(path.find('/', start), path.size());
    parts.push_back(path.substr(start, end - start));
    start = end + 1;
  }
  return parts;
}

bool isPlain(std::string_view component) {
  return !component.empty() && component != "." && component != "..";
}

// `../../../devices/pci0000:3a/0000:3a:00.0/0000:3b:00.0`; sysfs links are relative. More
// components can come between `devices/` and the bridge (`platform/...`, a VMD's own root bus).
std::optional<Place> placeOf(const std::string& name, std::string_view target) {
  constexpr std::string_view prefix = "../../../devices/";
  const auto address = parsePciAddress(name);
  if (!address || toString(*address) != name || !target.starts_with(prefix)) {
    return std::nullopt;
  }
  const auto path = target.substr(prefix.size());
  const auto parts = components(path);
  if (parts.size() < 2 || parts.back() != name ||
      !std::all_of(parts.begin(), parts.end(), isPlain)) {
    return std::nullopt;
  }
  const auto bridge = std::find_if(parts.rbegin(), parts.rend(),
                                   [](std::string_view part) { return part.starts_with("pci"); });
  return Place{*address, std::string(path),
               std::string(bridge == parts.rend() ? parts.front() : *bridge),
               std::string(parts[parts.size() - 2])};
}

std::size_t bridgeNumber(const std::vector<HostBridge>& bridges, const std::string& name) {
  const auto found =
      std::lower_bound(bridges.begin(), bridges.end(), name,
                       [](const HostBridge& bridge, const auto& at) { return bridge.name < at; });
  return static_cast<std::size_t>(found - bridges.begin());
}

std::vector<HostBridge> hostBridges(const std::vector<Place>& places) {
  std::vector<std::string> names;
  for (const Place& place : places) {
    names.push_back(place.bridge);
  }
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  std::vector<HostBridge> bridges;
  for (auto& name : names) {
    bridges.push_back({std::move(name), -1});
  }
  return bridges;
}

// A parent's path is the child's path without its last component, so parents cannot form a cycle.
void findParent(Topology& topology, TopologyFunction& function, const std::string& above) {
  const auto address = parsePciAddress(above);
  if (!address) {
    return;  // the root bus
  }
  const TopologyFunction* parent = findFunction(topology, *address);
  if (parent == nullptr || function.path != parent->path + "/" + toString(function.address)) {
    topology.problems.push_back(
        {toString(function.address), "its parent " + above +
                                         " is missing or at a different path; "
                                         "treating the function as a device on the root bus"});
    return;
  }
  function.parent = static_cast<std::size_t>(parent - topology.functions.data());
}

}  // namespace

Topology readPlaces(const host::Root& root) {
  constexpr const char* bus = "sys/bus/pci/devices";
  Topology topology;
  const host::Folder folder(root, bus);
  std::vector<Place> places;
  for (const std::string& name : root.list(bus)) {
    const auto target = folder.linkTarget(name);
    if (auto place = target ? placeOf(name, *target) : std::nullopt) {
      places.push_back(std::move(*place));
    } else if (target || !root.isLive()) {  // without a link, it has just been removed
      topology.problems.push_back({name, "its link in " + std::string(bus) + " is invalid"});
    }
  }
  std::sort(places.begin(), places.end(),
            [](const Place& one, const Place& other) { return one.address < other.address; });
  topology.hostBridges = hostBridges(places);
  for (const Place& place : places) {
    TopologyFunction function;
    function.address = place.address;
    function.path = place.path;
    function.hostBridge = bridgeNumber(topology.hostBridges, place.bridge);
    topology.functions.push_back(std::move(function));
  }
  for (std::size_t i = 0; i < places.size(); ++i) {
    findParent(topology, topology.functions[i], places[i].above);
  }
  return topology;
}

}  // namespace vfpass::inventory
