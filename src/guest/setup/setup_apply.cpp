#include "vfpass/setup/setup_apply.hpp"

#include <algorithm>
#include <chrono>
#include <thread>

#include "guest_files.hpp"
#include "setup_steps.hpp"
#include "vfpass/base/default_deadlines.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/base/unified_diff.hpp"
#include "vfpass/error.hpp"

namespace vfpass::setup {
namespace {

using std::chrono::seconds;

void makeChanges(const SetupTools& tools, const SetupPlan& plan) {
  const SetupSteps steps(tools, plan);
  steps.createFiles(!plan.undo);
  if (!plan.undo) {
    steps.keepRecord();
  }
  steps.changeFiles();
  const SetupPlan renamed = steps.renamePorts();
  const SetupSteps named(tools, renamed);
  named.reload();
  // The network manager may already have made some of the changes, which would now fail.
  const SetupPlan rest = named.withCurrentState();
  SetupSteps(tools, rest).changePorts();
  steps.unloadModule();
  named.waitForPorts();
  if (plan.undo) {
    steps.removeEmptyDirectories();
    steps.removeRecord();
  }
}

// Drops files that have not been changed yet: rewriting them could fail, for example on a full
// disk.
void keepChangedFiles(const SetupTools& tools, SetupPlan& back) {
  std::vector<std::string> paths;
  for (const SetupFile& file : back.files) {
    paths.push_back(file.path);
  }
  SetupView current;
  readFiles(tools.agent, tools.root, paths, current);
  std::erase_if(back.files,
                [&](const SetupFile& file) { return current.files[file.path] == file.after; });
}

void rollBack(SetupTools tools, const SetupPlan& plan) {
  tools.checkpoint = {};  // a stop request must not interrupt the rollback
  tools.agent.allowAtLeast(deadlines::setupRollback);
  SetupSteps(tools, plan).removeUnfinished();
  SetupPlan back = reversed(plan);
  keepChangedFiles(tools, back);
  const SetupSteps steps(tools, back);
  steps.createFiles(false);
  steps.changeFiles();
  const SetupPlan renamed = steps.renamePorts();
  const SetupSteps named(tools, renamed);
  try {
    named.reload();
  } catch (const Error& error) {  // may be the original failure; the ports are restored without it
    tools.warn(error.what());
  }
  const SetupPlan rest = named.withCurrentState();
  SetupSteps(tools, rest).changePorts();
  static_cast<void>(SetupSteps(tools, rest).loadModule());
  SetupSteps(tools, rest).unloadModule();
  steps.removeEmptyDirectories();
  steps.restoreRecord();
}

constexpr const char* undoRemedy = "run `vfpass guest-setup --undo` once the guest answers again";

struct RollbackResult {
  bool done = false;
  std::string message;  ///< appended to the original error
};

RollbackResult tryRollBack(const SetupTools& tools, const SetupPlan& plan) {
  try {
    rollBack(tools, plan);
    return {true, "; changes in the guest rolled back"};
  } catch (const std::exception& error) {
    return {false, "; cannot roll back the changes in the guest: " + std::string(error.what())};
  }
}

// The agent answers before systemd has started everything, and a network manager that has not
// started yet would be overlooked. If a unit hangs, the agent's timeout ends the wait.
SetupView viewOnceStarted(const SetupTools& tools) {
  for (bool reported = false;; reported = true) {
    SetupView view = readSetupView(tools.agent, tools.root);
    if (!view.starting) {
      return view;
    }
    if (tools.checkpoint) {
      tools.checkpoint();
    }
    if (!reported) {
      tools.say(
          "guest: waiting for systemd to finish starting (`systemctl list-jobs` lists the "
          "pending jobs)");
    }
    std::this_thread::sleep_for(seconds(1));
  }
}

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

ObservedGuest observeGuest(const SetupTools& tools, const DesiredSetup& desired) {
  ObservedGuest guest{viewOnceStarted(tools), {}};
  std::vector<std::string> paths = setupPaths(desired, {});
  paths.emplace_back(recordPath);
  readFiles(tools.agent, tools.root, paths, guest.view);
  if (const auto why = guest.view.unusable.find(recordPath); why != guest.view.unusable.end()) {
    throw Error(std::string("cannot read ") + recordPath + " in the guest: " + why->second,
                "inspect that file in the guest");
  }
  if (const FileState& record = guest.view.files[recordPath]; record.exists) {
    guest.record = decodeRecord(record.content);
  }
  std::vector<std::string> more;
  for (const std::string& path : setupPaths(desired, guest.record)) {
    if (!guest.view.files.contains(path) && !guest.view.unusable.contains(path)) {
      more.push_back(path);
    }
  }
  if (!more.empty()) {
    readFiles(tools.agent, tools.root, more, guest.view);
  }
  return guest;
}

void applySetup(const SetupTools& tools, const SetupPlan& wanted) {
  tools.agent.requireFileWriting();
  SetupPlan plan = wanted;
  try {
    if (!SetupSteps(tools, wanted).loadModule()) {
      plan = withoutPeerMemory(wanted);
    }
    makeChanges(tools, plan);
  } catch (const Cancelled& cancelled) {
    const RollbackResult rollback = tryRollBack(tools, plan);
    if (!rollback.done) {
      throw Error(cancelled.what() + rollback.message, undoRemedy);
    }
    throw Cancelled(cancelled.signal(), cancelled.what() + rollback.message);
  } catch (const Error& error) {
    const RollbackResult rollback = tryRollBack(tools, plan);
    throw Error(error.what() + rollback.message,
                rollback.done ? error.remedy() : undoRemedy + ("; " + error.remedy()),
                error.code());
  }
}

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
