#include "vfpass/guest/setup_plan.hpp"

#include <algorithm>

#include "nccl_conf.hpp"
#include "network_files.hpp"
#include "nvlink_file.hpp"
#include "setup_paths.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/error.hpp"

namespace vfpass::guest {
namespace {

// A host with several interfaces in one network answers for an address on any of them, and RoCE
// then goes to a port that does not have it. announce 1: avoid sources of another network; ignore
// 2: answer only for the interface's own addresses, and only to senders of its network.
constexpr unsigned arpAnnounce = 1;
constexpr unsigned arpIgnore = 2;

std::string folderOf(const std::string& path) { return path.substr(0, path.rfind('/')); }

bool wantsNetwork(const WantedPort& port) {
  return port.network.address.has_value() || port.network.mtu.has_value();
}

class Planner {
 public:
  Planner(const SetupWish& wish, const SetupView& view, const SetupRecord& record)
      : wish_(wish), view_(view), tool_(networkToolOf(view)) {
    plan_.record = record;
    plan_.tool = toString(tool_);
    plan_.notes = wish.notes;
    const auto kept = view.files.find(recordPath);
    plan_.recordBefore = kept == view.files.end() ? FileState{} : kept->second;
  }

  SetupPlan run() {
    place();
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

  // Which interface of the guest a port is. A bond copies its address to all of its members.
  void place() {
    for (const WantedPort& port : wish_.ports) {
      std::vector<const SetupNetdev*> found;
      for (const SetupNetdev& netdev : view_.netdevs) {
        const bool elsewhere =
            !port.function.empty() && !netdev.function.empty() && netdev.function != port.function;
        if (!elsewhere && !port.address.empty() && netdev.address.ends_with(port.address)) {
          found.push_back(&netdev);
        }
      }
      if (port.teamed) {
        note(port.entry + ": teamed; its address belongs to the interface above it, set it there");
      } else if (found.size() == 1) {
        placed_.push_back({port, *found.front()});
      } else if (found.empty()) {
        note(port.entry + ": the guest has no interface with " + port.address +
             ", is its driver loaded?");
      } else {
        note(port.entry + ": " + std::to_string(found.size()) +
             " interfaces of the guest have the address " + port.address + ", none is touched");
      }
    }
  }

  void want(WantedFile file) { wanted_.push_back(std::move(file)); }

  void planNetwork() {
    for (const PlacedPort& port : placed_) {
      if (wantsNetwork(port.wanted)) {
        network_.push_back(port);
      }
    }
    for (WantedFile& file : networkFiles(tool_, network_, view_, wish_.domain)) {
      want(std::move(file));
    }
    if (!network_.empty() && tool_ == NetworkTool::plain && !view_.running.contains("systemd")) {
      note(
          "no network manager and no systemd: addresses and MTU do not outlast the guest's next "
          "boot, run this again after it");
    }
    if (std::any_of(network_.begin(), network_.end(),
                    [](const PlacedPort& port) { return port.wanted.infiniband; }) &&
        (tool_ == NetworkTool::netplan || tool_ == NetworkTool::networkd)) {
      note("InfiniBand interfaces are known to " + toString(tool_) +
           " by name: a renamed one has to be set up again");
    }
  }

  // RoCE only: IPoIB resolves by path records.
  void planArp() {
    for (const PlacedPort& port : placed_) {
      if (!port.wanted.infiniband) {
        multiHomed_.push_back(port.netdev.name);
      }
    }
    if (multiHomed_.size() < 2) {
      multiHomed_.clear();
      return;
    }
    std::string text =
        "# Written by `vfpass guest-setup` on the host; --undo takes it out.\n"
        "# Each RoCE port answers for its own addresses only.\n";
    for (const std::string& name : multiHomed_) {
      // With slashes, a dot in an interface's name is no separator.
      const std::string key = "net/ipv4/conf/" + name + "/";
      text += key + "arp_announce = " + std::to_string(arpAnnounce) + "\n" + key +
              "arp_ignore = " + std::to_string(arpIgnore) + "\n";
    }
    want({sysctlFile, text, 0644, "several RoCE ports in one guest"});
    if (!view_.running.contains("systemd")) {
      note(std::string("nobody reads ") + sysctlFile + " at boot unless the guest's init does");
    }
  }

  void planNccl() {
    if (!wish_.ncclTopology.empty()) {
      want({ncclTopologyFile, wish_.ncclTopology, 0644,
            "where the host has the guest's GPUs and ports, for NCCL"});
    }
    const auto lines = ncclLines(wish_.nccl, wish_.ncclTopology.empty() ? "" : ncclTopologyFile);
    const FileState& now = current(ncclFile);
    const std::string content = withNcclBlock(now.content, lines);
    for (const std::string& line : voidedLines(now.content, lines)) {
      note(std::string(ncclFile) + ": `" + line + "` does not count any more: the mapping's does");
    }
    const auto recorded = plan_.record.files.find(ncclFile);
    const bool ours = recorded != plan_.record.files.end();
    // Without a block, a file that nobody else wrote to goes back whole; otherwise only the block.
    const bool asFound = ours && content == recorded->second.content;
    if (!lines.empty() || (ours && !asFound && now.exists)) {
      const unsigned mode = now.exists ? now.mode : 0644U;
      want({ncclFile, content, mode, "what the mapping says of NCCL"});
    }
  }

  void planPeerMemory() {
    if (!wish_.peerMemory) {
      plan_.unloadPeerMemory = plan_.record.peerMemory && view_.peerMemoryLoaded;
      plan_.record.peerMemory = false;
      return;
    }
    if (!view_.gpu) {
      return;
    }
    if (!view_.gpuDriver) {
      note("an NVIDIA GPU without its driver: nvidia_peermem is left for when there is one");
    } else if (!view_.peerMemoryLoadable && !view_.peerMemoryLoaded) {
      note(
          "the guest's kernel has no nvidia_peermem: GPUDirect RDMA then needs DMA-BUF (open GPU "
          "kernel modules); `vfpass verify --gpu` says whether it is there");
    } else if (view_.peerMemoryLoadable) {
      want({modulesFile,
            "# Written by `vfpass guest-setup` on the host; --undo takes it out.\nnvidia-peermem\n",
            0644, "GPUDirect RDMA where there is no DMA-BUF"});
      plan_.loadPeerMemory = !view_.peerMemoryLoaded;
      plan_.record.peerMemory = plan_.record.peerMemory || plan_.loadPeerMemory;
    }
  }

  void planNvlink() {
    if (!wish_.nvlinkDisabled || !view_.gpu) {
      return;
    }
    want(nvlinkOptions());
    if (const std::string text = nvlinkNote(view_); !text.empty()) {
      note(text);
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
      throw Error("the guest's " + path + " cannot be changed: " + why->second,
                  "make a plain file of it, or move it away");
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
        change(path, original.exists ? "as it was found" : "not there before", original);
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
          planPort({nothing, netdev});
        }
      }
    }
  }

  // What is wished for; what was ours and is not any more, as it was found; all else as it is.
  void planPort(const PlacedPort& port) {
    const NetdevState& now = port.netdev.state;
    RecordedPort recorded{now, {}, false, false, false};
    const auto known = plan_.record.ports.find(port.wanted.address);
    if (known != plan_.record.ports.end()) {
      recorded = known->second;
    }
    const NetdevState& original = recorded.original;
    const GuestNetwork& wanted = port.wanted.network;
    const bool multiHomed =
        std::find(multiHomed_.begin(), multiHomed_.end(), port.netdev.name) != multiHomed_.end();
    NetdevState after = now;
    after.mtu = wanted.mtu.value_or(recorded.mtu ? original.mtu : now.mtu);
    after.up = wantsNetwork(port.wanted) || (recorded.up ? original.up : now.up);
    after.addresses = addressesAfter(wanted, recorded, now);
    if (multiHomed && now.arpAnnounce && now.arpIgnore) {
      after.arpAnnounce = arpAnnounce;
      after.arpIgnore = arpIgnore;
    } else if (recorded.arp) {
      after.arpAnnounce = original.arpAnnounce;
      after.arpIgnore = original.arpIgnore;
    }
    recorded.mtu = wanted.mtu.has_value();
    recorded.up = wantsNetwork(port.wanted);
    recorded.arp = multiHomed;
    recorded.addresses.clear();
    if (wanted.address) {
      recorded.addresses.insert(*canonicalAddress(*wanted.address));
    }
    if (known != plan_.record.ports.end() || recorded.up || recorded.arp) {
      plan_.record.ports[port.wanted.address] = recorded;
    }
    if (after != now) {
      const bool byTool = tool_ != NetworkTool::plain && wantsNetwork(port.wanted);
      plan_.ports.push_back({port.wanted.entry, port.netdev.name, byTool, now, after});
    }
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
    // A manager that took the interface over has dropped what was set by hand.
    const bool ours = recorded.up || recorded.mtu || !recorded.addresses.empty();
    if (!wanted.address && !wanted.mtu && ours) {
      after.insert(original.begin(), original.end());
    }
    if (wanted.address) {
      after.insert(*canonicalAddress(*wanted.address));
    }
    return after;
  }

  const SetupWish& wish_;
  const SetupView& view_;
  NetworkTool tool_;
  SetupPlan plan_;
  std::vector<PlacedPort> placed_;
  std::vector<PlacedPort> network_;
  std::vector<WantedFile> wanted_;
  std::vector<std::string> multiHomed_;
};

}  // namespace

std::vector<std::string> setupPaths(const SetupWish& wish, const SetupRecord& record) {
  std::vector<std::string> paths{netplanFile,      interfacesFile, plainScript, plainSettings,
                                 plainUnit,        sysctlFile,     modulesFile, ncclFile,
                                 ncclTopologyFile, nvlinkFile};
  for (const WantedPort& port : wish.ports) {
    paths.push_back(std::string(connectionFolder) + "/vfpass-" + port.entry + ".nmconnection");
    paths.push_back(std::string(networkdFolder) + "/10-vfpass-" + port.entry + ".network");
  }
  for (const auto& [path, file] : record.files) {
    if (std::find(paths.begin(), paths.end(), path) == paths.end()) {
      paths.push_back(path);
    }
  }
  return paths;
}

SetupPlan planSetup(const SetupWish& wish, const SetupView& view, const SetupRecord& record) {
  return Planner(wish, view, record).run();
}

SetupPlan planUndo(const SetupView& view, const SetupRecord& record) {
  SetupPlan plan = Planner({}, view, record).run();
  plan.undo = true;
  return plan;
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
  }
  std::swap(back.loadPeerMemory, back.unloadPeerMemory);
  return back;
}

}  // namespace vfpass::guest
