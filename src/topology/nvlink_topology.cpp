#include "vfpass/topology/nvlink_topology.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "vfpass/base/text.hpp"
#include "vfpass/topology/nearest_pf.hpp"

namespace vfpass::topology {
namespace {

constexpr std::uint16_t nvidia = 0x10de;
constexpr std::uint32_t controller3d = 0x0302;

// GPUs of boards whose NVSwitches are not PCI functions of the host: HGX B200 and B300. The device
// ids were not checked against hardware.
bool isOnSwitchlessBoard(const Device& gpu) {
  constexpr std::array<std::uint16_t, 2> devices{0x2901, 0x3182};
  return std::ranges::find(devices, gpu.device) != devices.end();
}

std::vector<std::size_t> switchesOf(const Topology& topology) {
  std::vector<std::size_t> switches;
  for (std::size_t i = 0; i < topology.functions.size(); ++i) {
    if (topology.functions[i].role == FunctionRole::nvswitch) {
      switches.push_back(i);
    }
  }
  return switches;
}

// The modules of a board have the same device ID; a card in a slot beside it has another one.
std::vector<std::size_t> largestKind(const Topology& topology,
                                     const std::vector<std::size_t>& gpus) {
  std::map<std::uint16_t, std::vector<std::size_t>> kinds;
  for (const std::size_t gpu : gpus) {
    kinds[topology.functions[gpu].device].push_back(gpu);
  }
  std::vector<std::size_t> largest;
  for (auto& [device, members] : kinds) {
    if (members.size() > largest.size()) {
      largest = std::move(members);
    }
  }
  return largest;
}

std::string counted(std::size_t count, const std::string& one, const std::string& more) {
  return std::to_string(count) + " " + (count == 1 ? one : more);
}

}  // namespace

NvlinkBoard nvlinkBoard(const Topology& topology) {
  NvlinkBoard board;
  board.switches = switchesOf(topology);
  std::vector<std::size_t> candidates;
  for (const std::size_t gpu : gpus(topology)) {
    const Device& function = topology.functions[gpu];
    const bool module = function.vendor == nvidia && function.classCode >> 8U == controller3d;
    if (module && (!board.switches.empty() || isOnSwitchlessBoard(function))) {
      candidates.push_back(gpu);
    }
  }
  board.gpus = largestKind(topology, candidates);
  return board;
}

std::string describe(const NvlinkBoard& board) {
  const std::string gpus = counted(board.gpus.size(), "GPU", "GPUs");
  return board.switches.empty()
             ? gpus
             : gpus + " and " + counted(board.switches.size(), "NVSwitch", "NVSwitches");
}

// A VFIO driver counts, too: a service VM with the NVSwitches can run the fabric manager.
bool switchesAreDriven(const Topology& topology, const NvlinkBoard& board) {
  return std::ranges::none_of(board.switches, [&](std::size_t number) {
    return topology.functions[number].driver.empty();
  });
}

// 16: two boards side by side (HGX A100 16-GPU).
bool isPartitionSize(std::size_t gpus) {
  constexpr std::array<std::size_t, 5> sizes{1, 2, 4, 8, 16};
  return std::ranges::find(sizes, gpus) != sizes.end();
}

namespace {

constexpr std::size_t namedDevices = 16;

class NvlinkJudge {
 public:
  NvlinkJudge(const Topology& topology, const Mapping& mapping)
      : topology_(topology), mapping_(mapping), board_(nvlinkBoard(topology)) {
    for (const MappedFunction& entry : mapping.functions) {
      const Device* function = findFunction(topology, entry.pci);
      if (function != nullptr) {
        given_.insert(static_cast<std::size_t>(function - topology.functions.data()));
      }
      names_.insert(entry.name);
    }
    for (const MappedVf& vf : mapping.vfs) {
      names_.insert(vf.name);
    }
  }

  NvlinkJudgement judge() {
    if (count(board_.gpus) == 0) {
      judgeWithoutGpus();
    } else if (mapping_.nvlink == NvlinkMode::partition) {
      judgePartition();
    } else if (mapping_.nvlink == NvlinkMode::disabled) {
      judgeDisabled();
    } else {
      judgeWhole();
    }
    return std::move(result_);
  }

 private:
  [[nodiscard]] std::size_t count(const std::vector<std::size_t>& functions) const {
    return static_cast<std::size_t>(std::ranges::count_if(
        functions, [&](std::size_t number) { return given_.contains(number); }));
  }

  [[nodiscard]] std::vector<std::size_t> missing() const {
    std::vector<std::size_t> left;
    for (const auto* functions : {&board_.gpus, &board_.switches}) {
      std::ranges::copy_if(*functions, std::back_inserter(left),
                           [&](std::size_t number) { return !given_.contains(number); });
    }
    return left;
  }

  // `2 of the 8 GPUs of a board with NVSwitches`
  [[nodiscard]] std::string ofBoard() const {
    return std::to_string(count(board_.gpus)) + " of the " + std::to_string(board_.gpus.size()) +
           " GPUs of a board with NVSwitches";
  }

  // The entry that a message names: the first one of the mapping on the board.
  [[nodiscard]] const MappedFunction& firstEntry(const std::vector<std::size_t>& functions) const {
    const auto found = std::ranges::find_if(mapping_.functions, [&](const MappedFunction& entry) {
      return std::ranges::any_of(functions, [&](std::size_t number) {
        return topology_.functions[number].address == entry.pci;
      });
    });
    return found == mapping_.functions.end() ? mapping_.functions.front() : *found;
  }

  void fault(const std::vector<std::size_t>& about, const std::string& message,
             const std::string& remedy) {
    const MappedFunction& entry = firstEntry(about);
    result_.faults.push_back({entry.place, entry.name + ": " + message, remedy});
  }

  // Lines for `gpus:` with names that the mapping does not use yet.
  std::string linesFor(const std::vector<std::size_t>& functions) {
    std::string lines;
    for (const std::size_t function : functions) {
      const Device& device = topology_.functions[function];
      const std::string kind = device.role == FunctionRole::nvswitch ? "nvswitch" : "gpu";
      std::size_t number = 0;
      while (names_.contains(kind + std::to_string(number))) {
        ++number;
      }
      const std::string name = kind + std::to_string(number);
      names_.insert(name);
      lines += "\n  - {name: " + name + ", pci: \"" + toString(device.address) + "\"}";
    }
    return lines;
  }

  [[nodiscard]] std::string addressesOf(const std::vector<std::size_t>& functions) const {
    std::vector<std::string> addresses;
    for (const std::size_t number : functions) {
      if (addresses.size() < namedDevices) {
        addresses.push_back(toString(topology_.functions[number].address));
      }
    }
    return join(addresses, ", ") + (functions.size() > namedDevices ? ", ..." : "");
  }

  // NVSwitches alone: the VM that runs the fabric manager for partitions of other VMs.
  void judgeWithoutGpus() {
    const std::size_t switches = count(board_.switches);
    if (switches > 0 && switches < board_.switches.size()) {
      fault(board_.switches,
            "a fabric manager needs every NVSwitch of the board; some are missing in the mapping",
            "add under `gpus:`:" + linesFor(withoutGpus(missing())));
    } else if (switches > 0) {
      result_.summary =
          "NVLink: all NVSwitches and no GPU of the board: a service VM for the fabric manager";
    } else if (mapping_.nvlink) {
      result_.summary = "NVLink: `nvlink: " + std::string(toString(*mapping_.nvlink)) +
                        "` is not needed: none of the GPUs is on a board with NVSwitches";
    }
  }

  [[nodiscard]] std::vector<std::size_t> withoutGpus(std::vector<std::size_t> functions) const {
    std::erase_if(functions, [&](std::size_t number) {
      return topology_.functions[number].role != FunctionRole::nvswitch;
    });
    return functions;
  }

  void judgeWhole() {
    const auto left = missing();
    if (left.empty()) {
      result_.summary = "NVLink: all " + describe(board_) +
                        " of the board; the guest runs the fabric manager" +
                        (board_.switches.empty() ? ", and needs the board's NVLink management "
                                                   "functions, which vfpass does not check"
                                                 : "");
    } else if (mapping_.nvlink) {
      fault(board_.gpus,
            "`nvlink: all` needs all " + describe(board_) +
                " of the board; missing in the mapping: " + addressesOf(left),
            "add under `gpus:`:" + linesFor(left));
    } else {
      faultUnstated();
    }
  }

  void faultUnstated() {
    result_.summary = "NVLink: not set up in the mapping";
    fault(board_.gpus,
          "the mapping has " + ofBoard() + " (" + describe(board_) +
              ") and does not set `nvlink:`: CUDA in the guest would fail with error 802 "
              "(system not yet initialized)",
          "add one of these lines to the mapping:\n"
          "  nvlink: disabled   # the guest's GPUs work without NVLink\n"
          "  nvlink: partition  # a fabric manager outside the guest activates a partition\n"
          "  nvlink: all        # the guest gets all " +
              describe(board_) + " (list them under `gpus:`)");
  }

  // Shared NVSwitch virtualization (NVIDIA's Fabric Manager User Guide).
  void judgePartition() {
    const std::size_t gpus = count(board_.gpus);
    if (count(board_.switches) > 0) {
      faultSwitches(
          "`nvlink: partition` leaves the NVSwitches to a fabric manager outside the "
          "guest, but the mapping lists some of them");
    }
    if (!isPartitionSize(gpus)) {
      fault(board_.gpus, "a partition cannot have " + std::to_string(gpus) + " GPUs",
            "give the VM 1, 2, 4 or 8 GPUs of the board, or use `nvlink: disabled`");
    }
    if (!switchesAreDriven(topology_, board_)) {
      fault(
          board_.gpus,
          "`nvlink: partition` needs a fabric manager, but some NVSwitches of the board have no "
          "driver",
          "load NVIDIA's driver on the host and start nvidia-fabricmanager with FABRIC_MODE=1, or "
          "use `nvlink: disabled`");
    }
    result_.summary = "NVLink: a partition of " + ofBoard() +
                      "; the fabric manager must activate it before each start (fmpm -l, fmpm -a)";
  }

  void judgeDisabled() {
    if (count(board_.switches) > 0) {
      faultSwitches(
          "`nvlink: disabled` does not use the board's NVSwitches, but the mapping lists some of "
          "them");
    }
    result_.summary = "NVLink: disabled in the guest, by `vfpass guest-setup`, on " + ofBoard();
  }

  void faultSwitches(const std::string& message) {
    fault(board_.switches, message,
          "remove the NVSwitches from the mapping, or list the whole board with `nvlink: all`");
  }

  const Topology& topology_;
  const Mapping& mapping_;
  NvlinkBoard board_;
  std::set<std::size_t> given_;
  std::set<std::string> names_;
  NvlinkJudgement result_;
};

}  // namespace

NvlinkJudgement judgeNvlink(const Topology& topology, const Mapping& mapping) {
  return NvlinkJudge(topology, mapping).judge();
}

}  // namespace vfpass::topology
