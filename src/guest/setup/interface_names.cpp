#include "interface_names.hpp"

#include <algorithm>

#include "vfpass/error.hpp"

namespace vfpass::setup {
namespace {

// udev reads .link files; other programs that name interfaces are not supported.
bool hasUdev(const SetupView& view) { return view.running.contains("systemd"); }

}  // namespace

bool wantsNetwork(const WantedPort& port) {
  return port.network.address.has_value() || port.network.mtu.has_value();
}

RecordedPort recordOf(const SetupRecord& record, const WantedPort& port, const NetdevState& now) {
  const auto known = record.ports.find(port.address);
  return known == record.ports.end() ? RecordedPort{now, {}, false, false, false} : known->second;
}

PlacedPort InterfaceNames::placed(const WantedPort& port, const SetupNetdev& netdev) const {
  if (isGiven(port)) {
    return {port, netdev, *port.network.name};
  }
  const RecordedPort recorded = recordOf(record_, port, netdev.state);
  const bool returns = !recorded.givenName.empty() && recorded.givenName == netdev.name &&
                       !exists(recorded.originalName);
  return {port, netdev, returns ? recorded.originalName : netdev.name};
}

bool InterfaceNames::isRenamedNow(const PlacedPort& port) const {
  return tool_ == NetworkTool::netplan && port.name != port.netdev.name &&
         (wantsNetwork(port.wanted) || recordOf(record_, port.wanted, port.netdev.state).up);
}

bool InterfaceNames::isRenamedLater(const PlacedPort& port) const {
  return port.name != port.netdev.name && !isRenamedNow(port);
}

bool InterfaceNames::needsLinkFile(const PlacedPort& port) const {
  return isGiven(port.wanted) && !(tool_ == NetworkTool::netplan && wantsNetwork(port.wanted));
}

std::vector<std::string> InterfaceNames::check(const std::vector<PlacedPort>& ports) const {
  std::vector<std::string> notes;
  for (const PlacedPort& port : ports) {
    if (!port.wanted.network.name) {
      continue;
    }
    const std::string& name = *port.wanted.network.name;
    const std::string failure = port.wanted.entry + ": cannot name the interface " + name + ": ";
    if (port.wanted.infiniband) {
      throw Error(failure + "the beginning of an InfiniBand interface's hardware address changes",
                  "remove `name:` from its `guest:` in the mapping", ExitCode::badInput);
    }
    if (!hasUdev(view_)) {
      notes.push_back(port.wanted.entry +
                      ": the guest has no systemd, so the interface keeps the "
                      "name " +
                      port.netdev.name);
    } else if (isTaken(port, ports)) {
      throw Error(failure + "another interface in the guest has this name",
                  "choose another name in the mapping", ExitCode::badInput);
    }
  }
  return notes;
}

void InterfaceNames::keep(const PlacedPort& port, RecordedPort& recorded) const {
  if (isGiven(port.wanted)) {
    if (recorded.givenName.empty()) {
      recorded.originalName = port.netdev.name;
    }
    recorded.givenName = port.name;
  } else if (recorded.givenName != port.netdev.name) {
    recorded.originalName.clear();
    recorded.givenName.clear();
  }
}

bool InterfaceNames::isGiven(const WantedPort& port) const {
  return port.network.name && !port.infiniband && hasUdev(view_);
}

bool InterfaceNames::exists(const std::string& name) const {
  return view_.otherNames.contains(name) ||
         std::ranges::any_of(view_.netdevs,
                             [&](const SetupNetdev& each) { return each.name == name; });
}

// Two of our interfaces can exchange their names at the guest's start, but not while it runs.
bool InterfaceNames::isTaken(const PlacedPort& port, const std::vector<PlacedPort>& ports) const {
  if (port.name == port.netdev.name || !exists(port.name)) {
    return false;
  }
  const bool leaves = std::ranges::any_of(ports, [&](const PlacedPort& other) {
    return other.netdev.name == port.name && isRenamedLater(other);
  });
  return !leaves || isRenamedNow(port);
}

}  // namespace vfpass::setup
