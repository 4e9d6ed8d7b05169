#include "vfpass/setup/setup_changes.hpp"

#include <algorithm>

#include "vfpass/base/text.hpp"
#include "vfpass/base/unified_diff.hpp"

namespace vfpass::setup {
namespace {

std::string numberText(const std::optional<unsigned>& value) {
  return value ? std::to_string(*value) : "?";
}

const SetupNetdev* findNetdev(const SetupView& view, const std::string& name) {
  const auto found = std::ranges::find_if(
      view.netdevs, [&](const SetupNetdev& each) { return each.name == name; });
  return found == view.netdevs.end() ? nullptr : &*found;
}

// Marks a missing final newline as diff does; otherwise no line would show that change.
std::string lines(const FileState& file) {
  return file.content.empty() || file.content.ends_with('\n')
             ? file.content
             : file.content + "\n\\ No newline at end of file\n";
}

GuestFileChange describe(const SetupFile& file) {
  const bool stays = file.before.exists && file.after.exists;
  return {file.path,
          file.reason,
          file.before.exists,
          file.after.exists,
          stays && file.before.mode != file.after.mode
              ? octal(file.before.mode) + " -> " + octal(file.after.mode)
              : "",
          unifiedDiff(lines(file.before), lines(file.after))};
}

}  // namespace

std::string octal(unsigned mode) {
  std::string text;
  for (int shift = 9; shift >= 0; shift -= 3) {
    text += static_cast<char>('0' + (mode >> static_cast<unsigned>(shift) & 7U));
  }
  return text;
}

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

std::vector<std::string> addressChanges(const SetupPort& port) {
  std::vector<std::string> changes;
  for (const std::string& address : port.before.addresses) {
    if (!port.after.addresses.contains(address)) {
      changes.push_back("-" + address);
    }
  }
  for (const std::string& address : port.after.addresses) {
    if (!port.before.addresses.contains(address)) {
      changes.push_back("+" + address);
    }
  }
  return changes;
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
  for (const std::string& change : addressChanges(port)) {
    changes.push_back("address " + change);
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

GuestSetupReport describeSetup(const SetupPlan& plan) {
  GuestSetupReport report;
  report.undo = plan.undo;
  report.tool = plan.tool;
  report.notes = plan.notes;
  for (const SetupFile& file : plan.files) {
    report.files.push_back(describe(file));
  }
  for (const SetupPort& port : plan.ports) {
    report.ports.push_back({port.entry, port.netdev, describeChanges(port)});
  }
  if (plan.loadPeerMemory) {
    report.actions.emplace_back("load nvidia_peermem");
  }
  if (plan.unloadPeerMemory) {
    report.actions.emplace_back("unload nvidia_peermem");
  }
  if (plan.undo && plan.recordBefore.exists) {
    report.actions.emplace_back(std::string("remove ") + recordFolder);
  }
  return report;
}

}  // namespace vfpass::setup
