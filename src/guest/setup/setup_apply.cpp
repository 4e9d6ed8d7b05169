#include "vfpass/setup/setup_apply.hpp"

#include <algorithm>
#include <chrono>
#include <thread>

#include "setup_paths.hpp"
#include "setup_steps.hpp"
#include "vfpass/base/default_deadlines.hpp"
#include "vfpass/error.hpp"
#include "vfpass/setup/setup_changes.hpp"

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

}  // namespace vfpass::setup
