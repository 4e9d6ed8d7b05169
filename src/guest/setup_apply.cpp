#include "vfpass/guest/setup_apply.hpp"

#include <algorithm>
#include <chrono>
#include <thread>

#include "network_files.hpp"
#include "run_shell.hpp"
#include "setup_paths.hpp"
#include "setup_scripts.hpp"
#include "sha256.hpp"
#include "trust_scripts.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/cancelled.hpp"

namespace vfpass::guest {
namespace {

using std::chrono::seconds;

// An address that a manager gives shows a moment later; one that waits for a carrier never does.
constexpr seconds networkSettles{30};
// Enough for a slow guest, once the user's own patience is used up.
constexpr seconds takingBackPatience{120};

// What a program said last is why it ended.
std::string lastWords(const ExecResult& result) {
  const std::string said{trim(result.err.empty() ? result.out : result.err)};
  const auto lines = splitLines(said);
  const auto first = lines.size() > 3 ? lines.end() - 3 : lines.begin();
  const std::string words = join({first, lines.end()}, "; ");
  return words.empty() ? "exit code " + std::to_string(result.exitCode)
                       : printable(words.substr(0, 500));
}

std::string temporaryOf(const std::string& path) {
  const auto slash = path.rfind('/');
  return path.substr(0, slash + 1) + "." + path.substr(slash + 1) + ".vfpass-new";
}

std::string octal(unsigned mode) {
  std::string text;
  for (int shift = 9; shift >= 0; shift -= 3) {
    text += static_cast<char>('0' + (mode >> static_cast<unsigned>(shift) & 7U));
  }
  return text;
}

class Writer {
 public:
  Writer(const SetupTools& tools, const SetupPlan& plan) : tools_(tools), plan_(plan) {}

  /// Creates, empty, what keepRecord() and changeFiles() fill: one call of the agent for all.
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
    runTrusted("create the files", createScript, arguments);
  }

  void keepRecord() const {
    const std::string text = encodeRecord(plan_.record);
    tools_.say("writing " + std::string(recordPath));
    fill(recordPath, text);
    runTrusted("keep what was there", installScript, {recordPath, sha256(text)});
  }

  // Back to before the first set-up, or to the record of the one before.
  void restoreRecord() const {
    SetupView now;
    readFiles(tools_.agent, tools_.root, {recordPath}, now);
    if (now.files[recordPath] == plan_.recordBefore && plan_.recordBefore.exists) {
      return;
    }
    if (plan_.recordBefore.exists) {
      std::vector<std::string> arguments{recordFolder, "--"};
      arguments.insert(arguments.end(), recordFile.begin(), recordFile.end());
      runTrusted("create the record", createScript, arguments);
      fill(recordPath, plan_.recordBefore.content);
      runTrusted("put the record back", installScript,
                 {recordPath, sha256(plan_.recordBefore.content)});
    } else {
      forget();
    }
  }

  void forget() const { run("remove the record", forgetScript, {}); }

  // Those that a set-up has made and that hold nothing of others.
  void dropFolders() const {
    run("remove empty folders", dropFoldersScript,
        {plan_.record.folders.begin(), plan_.record.folders.end()});
  }

  void changeFiles() const {
    if (goes(plainUnit)) {
      run("disable " + std::string(plainUnitName), disableScript, {plainUnitName}, true);
    }
    if (touches(interfacesFile)) {
      run("take down what " + std::string(interfacesFile) + " has set", interfacesDownScript,
          netdevs());
    }
    std::vector<std::string> written;
    std::vector<std::string> removed;
    for (const SetupFile& file : plan_.files) {
      if (file.after.exists) {
        step("writing " + file.path);
        fill(file.path, file.after.content);
        written.insert(written.end(), {file.path, sha256(file.after.content)});
      } else {
        removed.push_back(file.path);
      }
    }
    if (!written.empty()) {
      runTrusted("put the files in place", installScript, written);
    }
    if (!removed.empty()) {
      run("remove files", removeScript, removed);
    }
  }

  // Whatever reads the files that have changed reads them now.
  void reload() const {
    const bool again = std::any_of(plan_.ports.begin(), plan_.ports.end(),
                                   [](const SetupPort& port) { return port.byTool; });
    const auto concerns = [&](NetworkTool tool, std::string_view folder) {
      return (again && plan_.tool == toString(tool)) || touches(folder);
    };
    if (concerns(NetworkTool::netplan, "/etc/netplan/")) {
      run("apply netplan's files", netplanScript, {});
    }
    if (concerns(NetworkTool::networkManager, connectionFolder)) {
      run("activate NetworkManager's connections", connectionsScript, connections());
    }
    const std::vector<std::string> left = netdevs(false);
    if (!left.empty() && (touches("/etc/netplan/") || touches(connectionFolder))) {
      run("end NetworkManager's connections", endConnectionsScript, left);
    }
    if (concerns(NetworkTool::networkd, networkdFolder)) {
      run("have systemd-networkd read its files", networkdScript, netdevs());
    }
    if (concerns(NetworkTool::ifupdown, interfacesFile)) {
      run("bring up what " + std::string(interfacesFile) + " sets", interfacesUpScript, netdevs());
    }
    if (touches(plainUnit) && !goes(plainUnit)) {
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
        addAddresses(port, arguments);
      }
      run("set up " + port.netdev, portScript, arguments);
    }
  }

  void changeModule() const {
    if (plan_.loadPeerMemory) {
      run("load nvidia_peermem", loadScript, {}, true,
          "it has to be built with the OFED that the guest has: OFED first, the GPU driver second");
    }
    if (plan_.unloadPeerMemory) {
      run("unload nvidia_peermem", unloadScript, {}, true, "something still uses it");
    }
  }

  void waitForPorts() const {
    const auto end = std::chrono::steady_clock::now() + networkSettles;
    for (;;) {
      heedCheckpoint();
      const std::string left = unreached(plan_, readSetupView(tools_.agent, tools_.root));
      if (left.empty()) {
        return;
      }
      if (std::chrono::steady_clock::now() >= end) {
        throw Error("the guest's " + plan_.tool + " took the settings, but " + printable(left),
                    "see what it says in the guest; an MTU cannot be larger than the PF's (`mtu:` "
                    "in host.yaml)");
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(500));
    }
  }

  // The interfaces as they are now, and not as the plan thought: what failed was half done.
  [[nodiscard]] SetupPlan fromNow() const {
    SetupPlan plan = plan_;
    const SetupView view = readSetupView(tools_.agent, tools_.root);
    for (SetupPort& port : plan.ports) {
      for (const SetupNetdev& netdev : view.netdevs) {
        if (netdev.name == port.netdev) {
          port.before = netdev.state;
        }
      }
    }
    return plan;
  }

  void dropNew() const {
    std::vector<std::string> paths{recordPath};
    for (const SetupFile& file : plan_.files) {
      paths.push_back(file.path);
    }
    run("remove what was not finished", dropNewScript, paths, true);
  }

 private:
  // Throws with the guest's own words; tolerated, they are a warning.
  void run(const std::string& what, const char* script, std::vector<std::string> arguments,
           bool tolerated = false, const std::string& remedy = "") const {
    step(what);
    arguments.insert(arguments.begin(), tools_.root);
    const ExecResult result = runShell(tools_.agent, script, arguments);
    if (result.exitCode == 0) {
      return;
    }
    const std::string message = "the guest cannot " + what + ": " + lastWords(result);
    if (!tolerated) {
      throw Error(message, remedy.empty() ? "see what the guest says" : remedy);
    }
    tools_.warn(message + (remedy.empty() ? "" : "; " + remedy));
  }

  void runTrusted(const std::string& what, const char* script,
                  std::vector<std::string> arguments) const {
    step(what);
    arguments.insert(arguments.begin(), tools_.root);
    const ExecResult result = runShell(tools_.agent, withTrust(script), arguments);
    if (result.exitCode == toolMissing) {
      throw AgentUnavailable("cannot " + what + " in the guest: " + lastWords(result),
                             "install that program in the guest");
    }
    if (result.exitCode != 0) {
      throw Error("the guest cannot " + what + ": " + lastWords(result),
                  result.exitCode == untrusted
                      ? "make that file or directory writable for root only, in the guest"
                      : "see what the guest says");
    }
  }

  void fill(const std::string& path, const std::string& content) const {
    tools_.agent.fillFile(tools_.root + temporaryOf(path), content);
  }

  void step(const std::string& what) const {
    heedCheckpoint();
    tools_.say(what);
  }

  void heedCheckpoint() const {
    if (tools_.checkpoint) {
      tools_.checkpoint();
    }
  }

  [[nodiscard]] bool touches(std::string_view start) const {
    return std::any_of(plan_.files.begin(), plan_.files.end(),
                       [&](const SetupFile& file) { return file.path.starts_with(start); });
  }

  [[nodiscard]] bool goes(std::string_view path) const {
    return std::any_of(plan_.files.begin(), plan_.files.end(), [&](const SetupFile& file) {
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

  static void addAddresses(const SetupPort& port, std::vector<std::string>& arguments) {
    for (const std::string& address : port.before.addresses) {
      if (!port.after.addresses.contains(address)) {
        arguments.push_back("-" + address);
      }
    }
    for (const std::string& address : port.after.addresses) {
      if (!port.before.addresses.contains(address)) {
        arguments.push_back("+" + address);
      }
    }
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
  writer.reload();
  // What a network manager has set or dropped meanwhile cannot be set or dropped twice.
  const SetupPlan rest = writer.fromNow();
  Writer(tools, rest).changePorts();
  writer.changeModule();
  writer.waitForPorts();
  if (plan.undo) {
    writer.dropFolders();
    writer.forget();
  }
}

// Files that were not reached are left alone: what failed may be a disk without room.
void keepChangedFiles(const SetupTools& tools, SetupPlan& back) {
  std::vector<std::string> paths;
  for (const SetupFile& file : back.files) {
    paths.push_back(file.path);
  }
  SetupView now;
  readFiles(tools.agent, tools.root, paths, now);
  std::erase_if(back.files,
                [&](const SetupFile& file) { return now.files[file.path] == file.after; });
}

void takeBack(SetupTools tools, const SetupPlan& plan) {
  tools.checkpoint = {};  // whoever asks to stop now gets what he wants by this
  tools.agent.allowAtLeast(takingBackPatience);
  Writer(tools, plan).dropNew();
  SetupPlan back = reversed(plan);
  keepChangedFiles(tools, back);
  const Writer writer(tools, back);
  writer.createFiles(false);
  writer.changeFiles();
  try {
    writer.reload();
  } catch (const Error& error) {  // often what failed before; the interfaces can do without it
    tools.warn(error.what());
  }
  const SetupPlan rest = writer.fromNow();
  Writer(tools, rest).changePorts();
  Writer(tools, rest).changeModule();
  writer.dropFolders();
  writer.restoreRecord();
}

constexpr const char* undoRemedy = "`vfpass guest-setup --undo` when the guest answers again";

struct TakenBack {
  bool done = false;
  std::string message;  ///< goes after what went wrong first
};

TakenBack tryTakeBack(const SetupTools& tools, const SetupPlan& plan) {
  try {
    takeBack(tools, plan);
    return {true, "; the guest is as it was"};
  } catch (const std::exception& error) {
    return {false, "; and taking it back failed: " + std::string(error.what())};
  }
}

// The agent answers while systemd still starts the rest: a network manager that does not run yet
// would be taken for none. A unit that hangs keeps the guest starting: the agent's time limit then
// ends the wait.
SetupView viewOnceStarted(const SetupTools& tools) {
  for (bool told = false;; told = true) {
    SetupView view = readSetupView(tools.agent, tools.root);
    if (!view.starting) {
      return view;
    }
    if (tools.checkpoint) {
      tools.checkpoint();
    }
    if (!told) {
      tools.say("waiting until the guest has started (`systemctl list-jobs` there says for what)");
    }
    std::this_thread::sleep_for(seconds(1));
  }
}

}  // namespace

SetupSight lookAtGuest(const SetupTools& tools, const SetupWish& wish) {
  SetupSight sight{viewOnceStarted(tools), {}};
  std::vector<std::string> paths = setupPaths(wish, {});
  paths.emplace_back(recordPath);
  readFiles(tools.agent, tools.root, paths, sight.view);
  if (const auto why = sight.view.unusable.find(recordPath); why != sight.view.unusable.end()) {
    throw Error(std::string("the guest's ") + recordPath + " cannot be read: " + why->second,
                "look at it in the guest");
  }
  if (const FileState& record = sight.view.files[recordPath]; record.exists) {
    sight.record = decodeRecord(record.content);
  }
  std::vector<std::string> more;
  for (const std::string& path : setupPaths(wish, sight.record)) {
    if (!sight.view.files.contains(path) && !sight.view.unusable.contains(path)) {
      more.push_back(path);
    }
  }
  if (!more.empty()) {
    readFiles(tools.agent, tools.root, more, sight.view);
  }
  return sight;
}

void applySetup(const SetupTools& tools, const SetupPlan& plan) {
  tools.agent.requireFileWriting();
  try {
    makeChanges(tools, plan);
  } catch (const Cancelled& cancelled) {
    const TakenBack back = tryTakeBack(tools, plan);
    if (!back.done) {
      throw Error(cancelled.what() + back.message, undoRemedy);
    }
    throw Cancelled(cancelled.signal(), cancelled.what() + back.message);
  } catch (const Error& error) {
    const TakenBack back = tryTakeBack(tools, plan);
    throw Error(error.what() + back.message,
                back.done ? error.remedy() : undoRemedy + ("; " + error.remedy()), error.code());
  }
}

}  // namespace vfpass::guest
