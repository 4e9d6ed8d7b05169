#include <algorithm>

#include "vfpass/base/text.hpp"
#include "vfpass/setup/setup_plan.hpp"

namespace vfpass::setup {
namespace {

std::string numberText(const std::optional<unsigned>& value) {
  return value ? std::to_string(*value) : "?";
}

const SetupNetdev* findNetdev(const SetupView& view, const std::string& name) {
  const auto found = std::find_if(view.netdevs.begin(), view.netdevs.end(),
                                  [&](const SetupNetdev& each) { return each.name == name; });
  return found == view.netdevs.end() ? nullptr : &*found;
}

}  // namespace

NetdevState expectedState(const SetupPort& port, const NetdevState& now) {
  NetdevState wanted = port.after;
  wanted.addresses = now.addresses;
  for (const std::string& address : port.before.addresses) {
    if (!port.after.addresses.contains(address)) {
      wanted.addresses.erase(address);
    }
  }
  for (const std::string& address : port.after.addresses) {
    if (!port.before.addresses.contains(address)) {
      wanted.addresses.insert(address);
    }
  }
  return wanted;
}

std::string pendingChanges(const SetupPlan& plan, const SetupView& view) {
  for (const SetupPort& port : plan.ports) {
    const std::string& name = port.rename.empty() ? port.netdev : port.rename;
    const SetupNetdev* netdev = findNetdev(view, name);
    if (netdev == nullptr) {
      return port.entry + ": " + name + " does not exist";
    }
    const auto pending = describeChanges(
        {port.entry, name, false, netdev->state, expectedState(port, netdev->state)});
    if (!pending.empty()) {
      return port.entry + ": " + name + ": " + join(pending, ", ");
    }
  }
  return "";
}

std::vector<std::string> describeChanges(const SetupPort& port) {
  const NetdevState& before = port.before;
  const NetdevState& after = port.after;
  std::vector<std::string> changes;
  if (!port.rename.empty()) {
    changes.push_back("name " + port.netdev + " -> " + port.rename);
  }
  if (before.mtu != after.mtu) {
    changes.push_back("mtu " + std::to_string(before.mtu) + " -> " + std::to_string(after.mtu));
  }
  for (const std::string& address : before.addresses) {
    if (!after.addresses.contains(address)) {
      changes.push_back("address -" + address);
    }
  }
  for (const std::string& address : after.addresses) {
    if (!before.addresses.contains(address)) {
      changes.push_back("address +" + address);
    }
  }
  if (before.up != after.up) {
    changes.emplace_back(after.up ? "up" : "down");
  }
  const auto arp = [&](const char* name, const auto& was, const auto& is) {
    if (was != is) {
      changes.push_back(std::string(name) + " " + numberText(was) + " -> " + numberText(is));
    }
  };
  arp("arp_announce", before.arpAnnounce, after.arpAnnounce);
  arp("arp_ignore", before.arpIgnore, after.arpIgnore);
  return changes;
}

}  // namespace vfpass::setup
