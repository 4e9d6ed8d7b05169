#include "vfpass/setup/setup_apply.hpp"

#include <algorithm>
#include <chrono>
#include <thread>

#include "network_files.hpp"
#include "setup_paths.hpp"
#include "setup_scripts.hpp"
#include "vfpass/agent/guest_scripts.hpp"
#include "vfpass/base/default_deadlines.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/error.hpp"
#include "vfpass/setup/setup_changes.hpp"

namespace vfpass::setup {
namespace {

using std::chrono::seconds;

// The last lines of a program's output usually name the cause.
std::string lastLines(const agent::ExecResult& result) {
  const std::string output{trim(result.err.empty() ? result.out : result.err)};
  const auto lines = splitLines(output);
  const auto first = lines.size() > 3 ? lines.end() - 3 : lines.begin();
  const std::string text = join({first, lines.end()}, "; ");
  return text.empty() ? "exit code " + std::to_string(result.exitCode)
                      : printable(text.substr(0, 500));
}

std::string temporaryOf(const std::string& path) {
  const auto slash = path.rfind('/');
  return path.substr(0, slash + 1) + "." + path.substr(slash + 1) + ".vfpass-new";
}

class Writer {
 public:
  Writer(const SetupTools& tools, const SetupPlan& plan) : tools_(tools), plan_(plan) {}

  /// Creates the empty files that keepRecord() and changeFiles() fill, in one agent command.
  void createFiles(bool record) const {
    std::vector<std::string> files;
    if (record) {
      files = recordFile;
    }
    for (const SetupFile& file : plan_.files) {
      if (file.after.exists) {
        files.insert(files.end(),
                     {file.path, octal(file.after.mode), std::to_string(file.after.user),
                      std::to_string(file.after.group)});
      }
    }
    if (files.empty()) {
      return;
    }
    std::vector<std::string> arguments(plan_.record.folders.begin(), plan_.record.folders.end());
    if (record) {
      arguments.emplace_back(recordFolder);
    }
    arguments.emplace_back("--");
    arguments.insert(arguments.end(), files.begin(), files.end());
    runTrusted("create files", createScript, arguments);
  }

  void keepRecord() const {
    const std::string text = encodeRecord(plan_.record);
    say("write " + std::string(recordPath));
    fill(recordPath, text);
    runTrusted("install the record", installScript, {recordPath, agent::sha256(text)});
  }

  // Restores the record of the previous set-up; without one, removes the record.
  void restoreRecord() const {
    SetupView current;
    readFiles(tools_.agent, tools_.root, {recordPath}, current);
    if (current.files[recordPath] == plan_.recordBefore && plan_.recordBefore.exists) {
      return;
    }
    if (plan_.recordBefore.exists) {
      std::vector<std::string> arguments{recordFolder, "--"};
      arguments.insert(arguments.end(), recordFile.begin(), recordFile.end());
      runTrusted("create the record", createScript, arguments);
      fill(recordPath, plan_.recordBefore.content);
      runTrusted("restore the record", installScript,
                 {recordPath, agent::sha256(plan_.recordBefore.content)});
    } else {
      removeRecord();
    }
  }

  void removeRecord() const { run("remove the record", removeRecordScript, {}); }

  // Removes directories that a set-up created, unless others have put files there.
  void removeEmptyDirectories() const {
    run("remove empty directories", removeDirectoriesScript,
        {plan_.record.folders.begin(), plan_.record.folders.end()});
  }

  void changeFiles() const {
    if (removes(plainUnit)) {
      run("disable " + std::string(plainUnitName), disableScript, {plainUnitName}, true);
    }
    if (changes(interfacesFile)) {
      run("bring down the interfaces in " + std::string(interfacesFile), interfacesDownScript,
          netdevs());
    }
    std::vector<std::string> written;
    std::vector<std::string> removed;
    for (const SetupFile& file : plan_.files) {
      if (file.after.exists) {
        step("write " + file.path);
        fill(file.path, file.after.content);
        written.insert(written.end(), {file.path, agent::sha256(file.after.content)});
      } else {
        removed.push_back(file.path);
      }
    }
    if (!written.empty()) {
      runTrusted("install files", installScript, written);
    }
    if (!removed.empty()) {
      run("remove files", removeScript, removed);
    }
  }

  // Before network managers read files that contain the new names. They, or changePorts(), bring
  // the interfaces up again. Returns the plan with the new names.
  [[nodiscard]] SetupPlan renamePorts() const {
    SetupPlan renamed = plan_;
    for (SetupPort& port : renamed.ports) {
      if (!port.rename.empty()) {
        run("rename " + port.netdev + " to " + port.rename, renameScript,
            {port.netdev, port.rename});
        port.netdev = port.rename;
        port.rename.clear();
      }
    }
    return renamed;
  }

  // Makes network managers and systemd read the changed files.
  void reload() const {
    const bool byTool =
        std::ranges::any_of(plan_.ports, [](const SetupPort& port) { return port.byTool; });
    const auto needsReload = [&](NetworkTool tool, std::string_view path) {
      return (byTool && plan_.tool == toString(tool)) || changes(path);
    };
    if (needsReload(NetworkTool::netplan, "/etc/netplan/")) {
      run("run netplan apply", netplanScript, {});
    }
    if (needsReload(NetworkTool::networkManager, connectionFolder)) {
      run("activate NetworkManager connections", connectionsScript, connections());
    }
    const std::vector<std::string> left = netdevs(false);
    if (!left.empty() && (changes("/etc/netplan/") || changes(connectionFolder))) {
      run("deactivate NetworkManager connections", endConnectionsScript, left);
    }
    if ((byTool && plan_.tool == toString(NetworkTool::networkd)) || changesNetworkd()) {
      run("reload systemd-networkd", networkdScript, netdevs());
    }
    if (needsReload(NetworkTool::ifupdown, interfacesFile)) {
      run("bring up the interfaces in " + std::string(interfacesFile), interfacesUpScript,
          netdevs());
    }
    if (changes(plainUnit) && !removes(plainUnit)) {
      run("enable " + std::string(plainUnitName), enableScript, {plainUnitName});
    }
  }

  void changePorts() const {
    for (const SetupPort& port : plan_.ports) {
      const auto mtu =
          !port.byTool && port.before.mtu != port.after.mtu ? std::to_string(port.after.mtu) : "";
      const bool state = !port.byTool && port.before.up != port.after.up;
      std::vector<std::string> arguments{port.netdev, mtu,
                                         state ? (port.after.up ? "up" : "down") : "",
                                         changed(port.before.arpAnnounce, port.after.arpAnnounce),
                                         changed(port.before.arpIgnore, port.after.arpIgnore)};
      if (!port.byTool) {
        const auto addresses = addressChanges(port);
        arguments.insert(arguments.end(), addresses.begin(), addresses.end());
      }
      run("set up " + port.netdev, portScript, arguments);
    }
  }

  // Without OFED the module's initialization fails with EINVAL: the kernel's own RDMA stack has no
  // ib_register_peer_memory_client.
  [[nodiscard]] bool loadModule() const {
    return !plan_.loadPeerMemory ||
           run("load nvidia_peermem", loadScript, {}, true,
               "install OFED first and the GPU driver second, so that the module is built for that "
               "OFED; without OFED use the open GPU kernel modules, whose DMA-BUF needs no "
               "nvidia_peermem. The guest does not load it at boot");
  }

  void unloadModule() const {
    if (plan_.unloadPeerMemory) {
      run("unload nvidia_peermem", unloadScript, {}, true,
          "stop the programs that use it, then run `modprobe -r nvidia-peermem` in the guest");
    }
  }

  void waitForPorts() const {
    const auto end = std::chrono::steady_clock::now() + deadlines::networkSettles;
    for (;;) {
      runCheckpoint();
      const std::string pending = pendingChanges(plan_, readSetupView(tools_.agent, tools_.root));
      if (pending.empty()) {
        return;
      }
      if (std::chrono::steady_clock::now() >= end) {
        throw Error(
            "the guest's " + plan_.tool + " did not apply all settings: " + printable(pending),
            "look at its messages in the guest; an MTU cannot exceed the PF's (`mtu:` in "
            "host.yaml)");
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(500));
    }
  }

  // The plan with the current state of the interfaces as `before`: a step may have failed halfway,
  // or a network manager may have changed something.
  [[nodiscard]] SetupPlan withCurrentState() const {
    SetupPlan plan = plan_;
    const SetupView view = readSetupView(tools_.agent, tools_.root);
    for (SetupPort& port : plan.ports) {
      for (const SetupNetdev& netdev : view.netdevs) {
        if (netdev.name == port.netdev) {
          if (port.byTool && plan.tool == toString(NetworkTool::ifupdown)) {
            // ifup has finished, and left an interface alone that it considers up.
            port.after = expectedState(port, netdev.state);
            port.byTool = false;
          }
          port.before = netdev.state;
        }
      }
    }
    return plan;
  }

  void removeUnfinished() const {
    std::vector<std::string> paths{recordPath};
    for (const SetupFile& file : plan_.files) {
      paths.push_back(file.path);
    }
    run("remove unfinished files", removeUnfinishedScript, paths, true);
  }

 private:
  // Throws Error with the script's own message; if `tolerated`, warns instead and returns false.
  bool run(const std::string& what, const char* script, std::vector<std::string> arguments,
           bool tolerated = false, const std::string& remedy = "") const {
    step(what);
    arguments.insert(arguments.begin(), tools_.root);
    const agent::ExecResult result = runShell(tools_.agent, script, arguments);
    if (result.exitCode == 0) {
      return true;
    }
    const std::string message = "cannot " + what + " in the guest: " + lastLines(result);
    if (!tolerated) {
      throw Error(message, remedy.empty() ? "fix the cause in the guest, then try again" : remedy);
    }
    tools_.warn(message + (remedy.empty() ? "" : "; " + remedy));
    return false;
  }

  void runTrusted(const std::string& what, const char* script,
                  std::vector<std::string> arguments) const {
    step(what);
    arguments.insert(arguments.begin(), tools_.root);
    const agent::ExecResult result = runShell(tools_.agent, agent::withTrust(script), arguments);
    if (result.exitCode == agent::toolMissing) {
      throw agent::AgentUnavailable("cannot " + what + " in the guest: " + lastLines(result),
                                    "install that program in the guest");
    }
    if (result.exitCode != 0) {
      throw Error("cannot " + what + " in the guest: " + lastLines(result),
                  result.exitCode == agent::untrusted
                      ? "make that file or directory writable for root only, in the guest"
                      : "fix the cause in the guest, then try again");
    }
  }

  void fill(const std::string& path, const std::string& content) const {
    tools_.agent.fillFile(tools_.root + temporaryOf(path), content);
  }

  void step(const std::string& what) const {
    runCheckpoint();
    say(what);
  }

  void say(const std::string& what) const { tools_.say("guest: " + what); }

  void runCheckpoint() const {
    if (tools_.checkpoint) {
      tools_.checkpoint();
    }
  }

  [[nodiscard]] bool changes(std::string_view start) const {
    return std::ranges::any_of(plan_.files,
                               [&](const SetupFile& file) { return file.path.starts_with(start); });
  }

  // udev reads .link files by itself.
  [[nodiscard]] bool changesNetworkd() const {
    return std::ranges::any_of(plan_.files, [](const SetupFile& file) {
      return file.path.starts_with(networkdFolder) && file.path.ends_with(".network");
    });
  }

  [[nodiscard]] bool removes(std::string_view path) const {
    return std::ranges::any_of(plan_.files, [&](const SetupFile& file) {
      return file.path == path && file.before.exists && !file.after.exists;
    });
  }

  [[nodiscard]] std::vector<std::string> connections() const {
    std::vector<std::string> pairs;
    for (const SetupPort& port : plan_.ports) {
      if (port.byTool) {
        pairs.insert(pairs.end(), {"vfpass-" + port.entry, port.netdev});
      }
    }
    return pairs;
  }

  [[nodiscard]] std::vector<std::string> netdevs(bool alsoByTool = true) const {
    std::vector<std::string> names;
    for (const SetupPort& port : plan_.ports) {
      if (alsoByTool || !port.byTool) {
        names.push_back(port.netdev);
      }
    }
    return names;
  }

  static std::string changed(const std::optional<unsigned>& before,
                             const std::optional<unsigned>& after) {
    return after && before != after ? std::to_string(*after) : "";
  }

  static inline const std::vector<std::string> recordFile{recordPath, "0600", "0", "0"};

  const SetupTools& tools_;
  const SetupPlan& plan_;
};

void makeChanges(const SetupTools& tools, const SetupPlan& plan) {
  const Writer writer(tools, plan);
  writer.createFiles(!plan.undo);
  if (!plan.undo) {
    writer.keepRecord();
  }
  writer.changeFiles();
  const SetupPlan renamed = writer.renamePorts();
  const Writer named(tools, renamed);
  named.reload();
  // The network manager may already have made some of the changes, which would now fail.
  const SetupPlan rest = named.withCurrentState();
  Writer(tools, rest).changePorts();
  writer.unloadModule();
  named.waitForPorts();
  if (plan.undo) {
    writer.removeEmptyDirectories();
    writer.removeRecord();
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
  Writer(tools, plan).removeUnfinished();
  SetupPlan back = reversed(plan);
  keepChangedFiles(tools, back);
  const Writer writer(tools, back);
  writer.createFiles(false);
  writer.changeFiles();
  const SetupPlan renamed = writer.renamePorts();
  const Writer named(tools, renamed);
  try {
    named.reload();
  } catch (const Error& error) {  // may be the original failure; the ports are restored without it
    tools.warn(error.what());
  }
  const SetupPlan rest = named.withCurrentState();
  Writer(tools, rest).changePorts();
  static_cast<void>(Writer(tools, rest).loadModule());
  Writer(tools, rest).unloadModule();
  writer.removeEmptyDirectories();
  writer.restoreRecord();
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
    if (!Writer(tools, wanted).loadModule()) {
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
