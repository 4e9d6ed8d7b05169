#include "setup_steps.hpp"

#include <algorithm>
#include <chrono>
#include <optional>
#include <thread>

#include "guest_files.hpp"
#include "setup_scripts.hpp"
#include "vfpass/agent/guest_scripts.hpp"
#include "vfpass/base/default_deadlines.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/error.hpp"
#include "vfpass/setup/setup_apply.hpp"

namespace vfpass::setup {
namespace {

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

std::string changed(const std::optional<unsigned>& before, const std::optional<unsigned>& after) {
  return after && before != after ? std::to_string(*after) : "";
}

const std::vector<std::string> recordFile{recordPath, "0600", "0", "0"};

}  // namespace

void SetupSteps::createFiles(bool record) const {
  std::vector<std::string> files;
  if (record) {
    files = recordFile;
  }
  for (const SetupFile& file : plan_.files) {
    if (file.after.exists) {
      files.insert(files.end(), {file.path, octal(file.after.mode), std::to_string(file.after.user),
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

void SetupSteps::keepRecord() const {
  const std::string text = encodeRecord(plan_.record);
  say("write " + std::string(recordPath));
  fill(recordPath, text);
  runTrusted("install the record", installScript, {recordPath, agent::sha256(text)});
}

void SetupSteps::restoreRecord() const {
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

void SetupSteps::removeRecord() const { run("remove the record", removeRecordScript, {}); }

void SetupSteps::removeEmptyDirectories() const {
  run("remove empty directories", removeDirectoriesScript,
      {plan_.record.folders.begin(), plan_.record.folders.end()});
}

void SetupSteps::changeFiles() const {
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

SetupPlan SetupSteps::renamePorts() const {
  SetupPlan renamed = plan_;
  for (SetupPort& port : renamed.ports) {
    if (!port.rename.empty()) {
      run("rename " + port.netdev + " to " + port.rename, renameScript, {port.netdev, port.rename});
      port.netdev = port.rename;
      port.rename.clear();
    }
  }
  return renamed;
}

void SetupSteps::reload() const {
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
    run("bring up the interfaces in " + std::string(interfacesFile), interfacesUpScript, netdevs());
  }
  if (changes(plainUnit) && !removes(plainUnit)) {
    run("enable " + std::string(plainUnitName), enableScript, {plainUnitName});
  }
}

void SetupSteps::changePorts() const {
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

bool SetupSteps::loadModule() const {
  return !plan_.loadPeerMemory ||
         run("load nvidia_peermem", loadScript, {}, true,
             "install OFED first and the GPU driver second, so that the module is built for that "
             "OFED; without OFED use the open GPU kernel modules, whose DMA-BUF needs no "
             "nvidia_peermem. The guest does not load it at boot");
}

void SetupSteps::unloadModule() const {
  if (plan_.unloadPeerMemory) {
    run("unload nvidia_peermem", unloadScript, {}, true,
        "stop the programs that use it, then run `modprobe -r nvidia-peermem` in the guest");
  }
}

void SetupSteps::waitForPorts() const {
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

SetupPlan SetupSteps::withCurrentState() const {
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

void SetupSteps::removeUnfinished() const {
  std::vector<std::string> paths{recordPath};
  for (const SetupFile& file : plan_.files) {
    paths.push_back(file.path);
  }
  run("remove unfinished files", removeUnfinishedScript, paths, true);
}

bool SetupSteps::run(const std::string& what, const char* script,
                     std::vector<std::string> arguments, bool tolerated,
                     const std::string& remedy) const {
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

void SetupSteps::runTrusted(const std::string& what, const char* script,
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

void SetupSteps::fill(const std::string& path, const std::string& content) const {
  tools_.agent.fillFile(tools_.root + temporaryOf(path), content);
}

void SetupSteps::step(const std::string& what) const {
  runCheckpoint();
  say(what);
}

void SetupSteps::say(const std::string& what) const { tools_.say("guest: " + what); }

void SetupSteps::runCheckpoint() const {
  if (tools_.checkpoint) {
    tools_.checkpoint();
  }
}

bool SetupSteps::changes(std::string_view start) const {
  return std::ranges::any_of(plan_.files,
                             [&](const SetupFile& file) { return file.path.starts_with(start); });
}

bool SetupSteps::changesNetworkd() const {
  return std::ranges::any_of(plan_.files, [](const SetupFile& file) {
    return file.path.starts_with(networkdFolder) && file.path.ends_with(".network");
  });
}

bool SetupSteps::removes(std::string_view path) const {
  return std::ranges::any_of(plan_.files, [&](const SetupFile& file) {
    return file.path == path && file.before.exists && !file.after.exists;
  });
}

std::vector<std::string> SetupSteps::connections() const {
  std::vector<std::string> pairs;
  for (const SetupPort& port : plan_.ports) {
    if (port.byTool) {
      pairs.insert(pairs.end(), {"vfpass-" + port.entry, port.netdev});
    }
  }
  return pairs;
}

std::vector<std::string> SetupSteps::netdevs(bool alsoByTool) const {
  std::vector<std::string> names;
  for (const SetupPort& port : plan_.ports) {
    if (alsoByTool || !port.byTool) {
      names.push_back(port.netdev);
    }
  }
  return names;
}

}  // namespace vfpass::setup
