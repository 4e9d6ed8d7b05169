#include "vfpass/setup/setup_plan.hpp"

#include <algorithm>
#include <string>

#include "guest_files.hpp"
#include "interface_names.hpp"
#include "vfpass/arp_policy.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/error.hpp"

namespace vfpass::setup {
namespace {

std::string folderOf(const std::string& path) { return path.substr(0, path.rfind('/')); }

class Planner {
 public:
  Planner(const DesiredSetup& desired, const SetupView& view, const SetupRecord& record)
      : desired_(desired), view_(view), tool_(networkToolOf(view)), names_(tool_, view, record) {
    plan_.record = record;
    plan_.tool = toString(tool_);
    plan_.notes = desired.notes;
    const auto kept = view.files.find(recordPath);
    plan_.recordBefore = kept == view.files.end() ? FileState{} : kept->second;
  }

  SetupPlan run() {
    findInterfaces();
    for (const std::string& text : names_.check(placed_)) {
      note(text);
    }
    planNetwork();
    planArp();
    planNccl();
    planPeerMemory();
    planNvlink();
    planFiles();
    planPorts();
    return plan_;
  }

 private:
  void note(const std::string& text) { plan_.notes.push_back(text); }

  // Finds the guest's interface of each port. The address can match several interfaces, because a
  // bond copies its address to all of its members.
  void findInterfaces() {
    for (const WantedPort& port : desired_.ports) {
      std::vector<const SetupNetdev*> found;
      for (const SetupNetdev& netdev : view_.netdevs) {
        const bool elsewhere =
            !port.function.empty() && !netdev.function.empty() && netdev.function != port.function;
        if (!elsewhere && !port.address.empty() && netdev.address.ends_with(port.address)) {
          found.push_back(&netdev);
        }
      }
      if (port.teamed) {
        note(port.entry + ": teamed, not configured; set the address on the interface above it");
      } else if (found.size() == 1) {
        placed_.push_back(names_.placed(port, *found.front()));
      } else if (found.empty()) {
        note(port.entry + ": the guest has no interface with " + port.address +
             "; check that its driver is loaded");
      } else {
        note(port.entry + ": " + std::to_string(found.size()) + " interfaces in the guest have " +
             port.address + "; none of them is configured");
      }
    }
  }

  void noteName(const PlacedPort& port) {
    if (names_.isRenamedLater(port)) {
      note(port.wanted.entry + ": the interface " + port.netdev.name + " is named " + port.name +
           " from the guest's next start");
    }
  }

  void want(WantedFile file) { wanted_.push_back(std::move(file)); }

  void planNetwork() {
    for (const PlacedPort& port : placed_) {
      if (wantsNetwork(port.wanted)) {
        network_.push_back(port);
      }
    }
    for (const PlacedPort& port : placed_) {
      if (names_.needsLinkFile(port)) {
        want(linkFile(port));
      }
    }
    for (WantedFile& file : networkFiles(tool_, network_, view_, desired_.domain)) {
      want(std::move(file));
    }
    if (!network_.empty() && tool_ == NetworkTool::plain && !view_.running.contains("systemd")) {
      note(
          "the guest has no network manager and no systemd: addresses and MTU are lost at its next "
          "boot; run vfpass guest-setup again after it");
    }
    if (std::ranges::any_of(network_,
                            [](const PlacedPort& port) { return port.wanted.infiniband; }) &&
        (tool_ == NetworkTool::netplan || tool_ == NetworkTool::networkd)) {
      note(toString(tool_) +
           " identifies InfiniBand interfaces by name: after a rename, run vfpass guest-setup "
           "again");
    }
  }

  // For RoCE only: IPoIB resolves addresses with path records.
  void planArp() {
    std::vector<std::string> names;
    for (const PlacedPort& port : placed_) {
      if (!port.wanted.infiniband) {
        multiHomed_.push_back(port.netdev.name);
        names.push_back(port.name);
      }
    }
    if (multiHomed_.size() < 2) {
      multiHomed_.clear();
      return;
    }
    std::string text = std::string(writtenBy) +
                       "# Each RoCE port announces, and answers for, only its own addresses.\n";
    for (const std::string& name : names) {
      // With slashes as separators, the interface's name may contain a dot.
      const std::string key = "net/ipv4/conf/" + name + "/";
      text += key + "arp_announce = " + std::to_string(arp::announce) + "\n" + key +
              "arp_ignore = " + std::to_string(arp::ignore) + "\n";
    }
    want({sysctlFile, text, 0644, "several RoCE ports in one guest"});
    if (!view_.running.contains("systemd")) {
      note(std::string(sysctlFile) + " takes effect at boot only if the guest's init reads it");
    }
  }

  void planNccl() {
    if (!desired_.ncclTopology.empty()) {
      want({ncclTopologyFile, desired_.ncclTopology, 0644,
            "the host's placement of the guest's GPUs and NICs, for NCCL"});
    }
    const auto lines =
        ncclLines(desired_.nccl, desired_.ncclTopology.empty() ? "" : ncclTopologyFile);
    const FileState& now = current(ncclFile);
    const std::string content = withNcclBlock(now.content, lines);
    for (const std::string& line : overriddenLines(now.content, lines)) {
      note(std::string(ncclFile) + ": `" + line +
           "` no longer takes effect: the mapping's setting precedes it");
    }
    const auto recorded = plan_.record.files.find(ncclFile);
    const bool ours = recorded != plan_.record.files.end();
    // If only the block differs from the recorded file, planFiles() restores that file; otherwise
    // only the block is removed.
    const bool isOriginal = ours && content == recorded->second.content;
    if (!lines.empty() || (ours && !isOriginal && now.exists)) {
      const unsigned mode = now.exists ? now.mode : 0644U;
      want({ncclFile, content, mode, "NCCL settings from the mapping"});
    }
  }

  void planPeerMemory() {
    if (!desired_.peerMemory) {
      plan_.unloadPeerMemory = plan_.record.peerMemory && view_.peerMemoryLoaded;
      plan_.record.peerMemory = false;
      return;
    }
    if (!view_.gpu) {
      return;
    }
    if (!view_.gpuDriver) {
      note(
          "an NVIDIA GPU has no driver: run vfpass guest-setup again after installing it, for "
          "nvidia_peermem");
    } else if (!view_.peerMemoryLoadable && !view_.peerMemoryLoaded) {
      note(
          "the guest's kernel has no nvidia_peermem: GPUDirect RDMA then needs DMA-BUF (open GPU "
          "kernel modules); `vfpass verify --gpu` checks for it");
    } else if (view_.peerMemoryLoadable && !view_.peerMemoryOlder) {
      want({modulesFile, std::string(writtenBy) + "nvidia-peermem\n", 0644,
            "GPUDirect RDMA without DMA-BUF"});
      plan_.loadPeerMemory = !view_.peerMemoryLoaded;
      if (plan_.loadPeerMemory) {
        plan_.modulesBefore = current(modulesFile);
      }
      plan_.record.peerMemory = plan_.record.peerMemory || plan_.loadPeerMemory;
    }
  }

  // Without these options a GPU on an NVSwitch board initializes only after a fabric manager has
  // set up the fabric. They take effect when the module is loaded, and an initramfs has a copy of
  // modprobe.d.
  void planNvlink() {
    if (!desired_.nvlinkDisabled || !view_.gpu) {
      return;
    }
    want({nvlinkFile, std::string(writtenBy) + "options nvidia NVreg_NvLinkDisable=1\n", 0644,
          "`nvlink: disabled`: the GPU initializes without the board's NVSwitches"});
    if (!view_.nvlinkDisabled) {
      note(
          "the guest's NVIDIA driver disables NVLink when it is loaded next: restart the guest; if "
          "the module is in its initramfs, run `update-initramfs -u` or `dracut -f` there first");
    }
  }

  [[nodiscard]] const FileState& current(const std::string& path) const {
    static const FileState none;
    const auto found = view_.files.find(path);
    return found == view_.files.end() ? none : found->second;
  }

  void change(const std::string& path, const std::string& reason, const FileState& after) {
    const FileState& before = current(path);
    if (before == after) {
      return;
    }
    if (const auto why = view_.unusable.find(path); why != view_.unusable.end()) {
      throw Error("cannot change " + path + " in the guest: " + why->second,
                  "replace it with a regular file of at most 256 KiB, or move it away");
    }
    if (after.exists && view_.missingFolders.contains(folderOf(path))) {
      plan_.record.folders.insert(folderOf(path));
    }
    plan_.record.files.emplace(path, before);
    plan_.files.push_back({path, reason, before, after});
  }

  void planFiles() {
    std::set<std::string> paths;
    for (const WantedFile& file : wanted_) {
      const FileState& now = current(file.path);
      const bool foreign = file.path == ncclFile && now.exists;
      paths.insert(file.path);
      change(file.path, file.reason,
             {true, file.content, file.mode, foreign ? now.user : 0, foreign ? now.group : 0});
    }
    const auto originals = plan_.record.files;
    for (const auto& [path, original] : originals) {
      if (!paths.contains(path)) {
        change(path, original.exists ? "restores the original" : "did not exist before", original);
      }
    }
  }

  void planPorts() {
    auto left = plan_.record.ports;
    for (const PlacedPort& port : placed_) {
      left.erase(port.wanted.address);
      planPort(port);
    }
    for (const auto& [address, recorded] : left) {
      for (const SetupNetdev& netdev : view_.netdevs) {
        if (netdev.address.ends_with(address)) {
          WantedPort nothing;
          nothing.entry = address;
          nothing.address = address;
          planPort(names_.placed(nothing, netdev));
        }
      }
    }
  }

  // Desired settings are applied, settings that an earlier set-up made and that are no longer
  // desired return to the recorded ones, and all others stay.
  void planPort(const PlacedPort& port) {
    const NetdevState& now = port.netdev.state;
    const bool known = plan_.record.ports.contains(port.wanted.address);
    RecordedPort recorded = recordOf(plan_.record, port.wanted, now);
    const std::string rename = names_.isRenamedNow(port) ? port.name : "";
    noteName(port);
    const NetdevState& original = recorded.original;
    const GuestNetwork& wanted = port.wanted.network;
    const bool multiHomed = std::ranges::find(multiHomed_, port.netdev.name) != multiHomed_.end();
    // The state after the set-up.
    NetdevState after = now;
    after.mtu = wanted.mtu.value_or(recorded.mtu ? original.mtu : now.mtu);
    after.up = wantsNetwork(port.wanted) || (recorded.up ? original.up : now.up);
    after.addresses = addressesAfter(wanted, recorded, now);
    if (multiHomed && now.arpAnnounce && now.arpIgnore) {
      after.arpAnnounce = arp::announce;
      after.arpIgnore = arp::ignore;
    } else if (recorded.arp) {
      after.arpAnnounce = original.arpAnnounce;
      after.arpIgnore = original.arpIgnore;
    }
    // The record: what vfpass sets from now on. A port of which it sets nothing needs none.
    recorded.mtu = wanted.mtu.has_value();
    recorded.up = wantsNetwork(port.wanted);
    recorded.arp = multiHomed;
    recorded.addresses.clear();
    if (wanted.address) {
      recorded.addresses.insert(*canonicalAddress(*wanted.address));
    }
    names_.keep(port, recorded);
    if (known || recorded.up || recorded.arp || !recorded.givenName.empty()) {
      plan_.record.ports[port.wanted.address] = recorded;
    }
    // The change, if any.
    if (after != now || !rename.empty()) {
      plan_.ports.push_back(
          {port.wanted.entry, port.netdev.name, isSetByTool(port), now, after, rename});
    }
  }

  // ifupdown knows interfaces by name only, so that it cannot configure one before its rename.
  [[nodiscard]] bool isSetByTool(const PlacedPort& port) const {
    return tool_ != NetworkTool::plain && wantsNetwork(port.wanted) &&
           !(tool_ == NetworkTool::ifupdown && names_.isRenamedLater(port));
  }

  static std::set<std::string> addressesAfter(const GuestNetwork& wanted,
                                              const RecordedPort& recorded,
                                              const NetdevState& now) {
    std::set<std::string> after = now.addresses;
    const auto& original = recorded.original.addresses;
    for (const std::string& given : recorded.addresses) {
      if (!original.contains(given)) {
        after.erase(given);
      }
    }
    // A network manager may have removed the original addresses when it took over the interface.
    const bool ours = recorded.up || recorded.mtu || !recorded.addresses.empty();
    if (!wanted.address && !wanted.mtu && ours) {
      after.insert(original.begin(), original.end());
    }
    if (wanted.address) {
      after.insert(*canonicalAddress(*wanted.address));
    }
    return after;
  }

  const DesiredSetup& desired_;
  const SetupView& view_;
  NetworkTool tool_;
  InterfaceNames names_;
  SetupPlan plan_;
  std::vector<PlacedPort> placed_;
  std::vector<PlacedPort> network_;
  std::vector<WantedFile> wanted_;
  std::vector<std::string> multiHomed_;
};

}  // namespace

std::vector<std::string> setupPaths(const DesiredSetup& desired, const SetupRecord& record) {
  std::vector<std::string> paths(setupFiles.begin(), setupFiles.end());
  for (const WantedPort& port : desired.ports) {
    paths.push_back(std::string(connectionFolder) + "/vfpass-" + port.entry + ".nmconnection");
    const std::string networkd = std::string(networkdFolder) + "/10-vfpass-" + port.entry;
    paths.insert(paths.end(), {networkd + ".network", networkd + ".link"});
  }
  for (const auto& [path, file] : record.files) {
    if (std::ranges::find(paths, path) == paths.end()) {
      paths.push_back(path);
    }
  }
  return paths;
}

SetupPlan planSetup(const DesiredSetup& desired, const SetupView& view, const SetupRecord& record) {
  return Planner(desired, view, record).run();
}

SetupPlan planUndo(const SetupView& view, const SetupRecord& record) {
  SetupPlan plan = Planner({}, view, record).run();
  plan.undo = true;
  return plan;
}

SetupPlan withoutPeerMemory(const SetupPlan& plan) {
  SetupPlan rest = plan;
  rest.loadPeerMemory = false;
  rest.record.peerMemory = false;
  std::erase_if(rest.files, [](const SetupFile& file) { return file.path == modulesFile; });
  // Without a record, the file is not ours.
  const auto original = rest.record.files.find(modulesFile);
  if (original != rest.record.files.end() && original->second != rest.modulesBefore) {
    rest.files.push_back(
        {modulesFile, "nvidia_peermem does not load", rest.modulesBefore, original->second});
  }
  return rest;
}

SetupPlan reversed(const SetupPlan& plan) {
  SetupPlan back = plan;
  std::reverse(back.files.begin(), back.files.end());
  for (SetupFile& file : back.files) {
    std::swap(file.before, file.after);
  }
  for (SetupPort& port : back.ports) {
    std::swap(port.before, port.after);
    port.byTool = false;
    if (!port.rename.empty()) {
      std::swap(port.netdev, port.rename);
    }
  }
  std::swap(back.loadPeerMemory, back.unloadPeerMemory);
  return back;
}

}  // namespace vfpass::setup
