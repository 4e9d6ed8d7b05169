#include "vfpass/topology/nvlink_topology.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "vfpass/base/text.hpp"
#include "vfpass/pci_address.hpp"
#include "vfpass/topology/nearest_pf.hpp"

namespace vfpass::topology {
namespace {

constexpr std::uint32_t controller3d = 0x0302;

std::vector<std::size_t> functionsWith(const Topology& topology, FunctionRole role) {
  std::vector<std::size_t> found;
  for (std::size_t i = 0; i < topology.functions.size(); ++i) {
    if (topology.functions[i].role == role) {
      found.push_back(i);
    }
  }
  return found;
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

std::string countOf(std::size_t count, const std::string& one, const std::string& more) {
  return std::to_string(count) + " " + (count == 1 ? one : more);
}

}  // namespace

NvlinkBoard nvlinkBoard(const Topology& topology) {
  NvlinkBoard board;
  board.switches = functionsWith(topology, FunctionRole::nvswitch);
  board.managers = functionsWith(topology, FunctionRole::nvlinkManagement);
  std::vector<std::size_t> candidates;
  for (const std::size_t gpu : gpus(topology)) {
    const Device& function = topology.functions[gpu];
    const bool module = function.vendor == nvidia && function.classCode >> 8U == controller3d;
    if (module && (!fabricOf(board).empty() || isBlackwellModule(function))) {
      candidates.push_back(gpu);
    }
  }
  board.gpus = largestKind(topology, candidates);
  return board;
}

namespace {

std::set<int> nodesOf(const Topology& topology, const NvlinkBoard& board) {
  std::set<int> nodes;
  for (const auto* functions : {&board.gpus, &board.switches}) {
    for (const std::size_t number : *functions) {
      nodes.insert(topology.functions[number].numaNode);
    }
  }
  return nodes;
}

// Halves of a board at the address of its ninth GPU.
std::array<NvlinkBoard, 2> halvesOf(const NvlinkBoard& board, std::size_t gpus) {
  const std::size_t second = board.gpus[gpus];
  std::array<NvlinkBoard, 2> halves;
  for (const std::size_t gpu : board.gpus) {
    halves.at(gpu < second ? 0 : 1).gpus.push_back(gpu);
  }
  for (const std::size_t each : board.switches) {
    halves.at(each < second ? 0 : 1).switches.push_back(each);
  }
  return halves;
}

}  // namespace

// Functions are in the order of their addresses. Each baseboard is below one socket; a socket can
// have several NUMA nodes, but no node is of two sockets.
std::vector<NvlinkBoard> nvlinkBaseboards(const Topology& topology) {
  constexpr std::size_t gpusOfOne = 8;
  const NvlinkBoard board = nvlinkBoard(topology);
  if (board.gpus.size() != 2 * gpusOfOne || board.switches.empty()) {
    return {board};
  }
  const auto halves = halvesOf(board, gpusOfOne);
  const auto first = nodesOf(topology, halves[0]);
  const auto second = nodesOf(topology, halves[1]);
  const bool shared =
      std::ranges::any_of(first, [&](int node) { return node < 0 || second.contains(node); });
  const bool whole = !halves[0].switches.empty() && !halves[1].switches.empty();
  return shared || second.contains(-1) || !whole ? std::vector{board}
                                                 : std::vector{halves[0], halves[1]};
}

std::vector<std::size_t> fabricOf(const NvlinkBoard& board) {
  std::vector<std::size_t> fabric = board.switches;
  fabric.insert(fabric.end(), board.managers.begin(), board.managers.end());
  return fabric;
}

std::string describe(const NvlinkBoard& board) {
  std::vector<std::string> parts{countOf(board.gpus.size(), "GPU", "GPUs")};
  if (!board.switches.empty()) {
    parts.push_back(countOf(board.switches.size(), "NVSwitch", "NVSwitches"));
  }
  if (!board.managers.empty()) {
    parts.push_back(countOf(board.managers.size(), "NVLink management function",
                            "NVLink management functions"));
  }
  return join(parts, " and ");
}

// A VFIO driver counts, too: a service VM with these functions can run the fabric manager.
bool fabricIsDriven(const Topology& topology, const NvlinkBoard& board) {
  const auto fabric = fabricOf(board);
  return !fabric.empty() && std::ranges::none_of(fabric, [&](std::size_t number) {
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
      : topology_(topology), mapping_(mapping) {
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
    board_ = boardOfMapping();
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
  // The baseboard whose functions alone the mapping has, if it has any of its GPUs; otherwise all.
  [[nodiscard]] NvlinkBoard boardOfMapping() const {
    NvlinkBoard whole = nvlinkBoard(topology_);
    const std::size_t given = count(whole.gpus) + count(whole.switches);
    for (NvlinkBoard& board : nvlinkBaseboards(topology_)) {
      if (count(board.gpus) > 0 && count(board.gpus) + count(board.switches) == given) {
        return std::move(board);
      }
    }
    return whole;
  }

  // `the board`, or `one of the two baseboards`
  [[nodiscard]] std::string boardName() const {
    return board_.gpus.size() == nvlinkBoard(topology_).gpus.size() ? "the board"
                                                                    : "one of the two baseboards";
  }

  [[nodiscard]] std::string fabricName() const {
    return board_.switches.empty() ? "NVLink management functions" : "NVSwitches";
  }

  [[nodiscard]] std::size_t count(const std::vector<std::size_t>& functions) const {
    return static_cast<std::size_t>(std::ranges::count_if(
        functions, [&](std::size_t number) { return given_.contains(number); }));
  }

  [[nodiscard]] std::vector<std::size_t> missing() const {
    std::vector<std::size_t> left;
    for (const auto* functions : {&board_.gpus, &board_.switches, &board_.managers}) {
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

  void faultMissing(const std::vector<std::size_t>& about, const std::string& message,
                    const std::vector<std::size_t>& left) {
    fault(about, message, "add " + linesFor(left));
    for (const std::size_t number : left) {
      result_.faults.back().missing.push_back(topology_.functions[number].address);
    }
  }

  static std::string kindOf(FunctionRole role) {
    return role == FunctionRole::nvswitch           ? "nvswitch"
           : role == FunctionRole::nvlinkManagement ? "nvlink-mgmt"
                                                    : "gpu";
  }

  // An entry with a name that the mapping does not use yet.
  std::string lineFor(const Device& device) {
    const std::string kind = kindOf(device.role);
    std::size_t number = 0;
    while (names_.contains(kind + std::to_string(number))) {
      ++number;
    }
    const std::string name = kind + std::to_string(number);
    names_.insert(name);
    return "\n  - {name: " + name + ", pci: \"" + toString(device.address) + "\"}";
  }

  std::string linesFor(const std::vector<std::size_t>& functions) {
    std::string gpus;
    std::string others;
    for (const std::size_t function : functions) {
      const Device& device = topology_.functions[function];
      (device.role == FunctionRole::nvlinkManagement ? others : gpus) += lineFor(device);
    }
    return (gpus.empty() ? "" : "under `gpus:`:" + gpus) +
           (gpus.empty() || others.empty() ? "" : "\nand ") +
           (others.empty() ? "" : "under `functions:`:" + others);
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
    const auto fabric = fabricOf(board_);
    const std::size_t given = count(fabric);
    if (given > 0 &&
        (mapping_.nvlink == NvlinkMode::partition || mapping_.nvlink == NvlinkMode::disabled)) {
      faultFabric();
    } else if (given > 0 && given < fabric.size()) {
      auto left = missing();
      std::erase_if(left, [&](std::size_t number) {
        return std::ranges::find(fabric, number) == fabric.end();
      });
      faultMissing(fabric,
                   "a fabric manager needs all " + fabricName() +
                       " of the board; some are missing in the mapping",
                   left);
    } else if (given > 0) {
      result_.summary = "NVLink: all " + fabricName() +
                        " and no GPU of the board: a service VM for the fabric manager";
    } else if (mapping_.nvlink) {
      result_.summary = "NVLink: `nvlink: " + std::string(toString(*mapping_.nvlink)) +
                        "` is not needed: none of the GPUs is on a board with NVSwitches";
    }
  }

  void judgeWhole() {
    const auto left = missing();
    if (left.empty()) {
      result_.summary = "NVLink: all " + describe(board_) + " of " + boardName() +
                        "; the guest runs the fabric manager" +
                        (fabricOf(board_).empty()
                             ? ", and needs the board's NVLink management functions (ConnectX with "
                               "SMDL=SW_MNG in its VPD), of which this host shows none"
                             : "");
    } else if (mapping_.nvlink) {
      faultMissing(board_.gpus,
                   "`nvlink: all` needs all " + describe(board_) + " of " + boardName() +
                       "; missing in the mapping: " + addressesOf(left),
                   left);
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
    if (count(fabricOf(board_)) > 0) {
      faultFabric();
    }
    if (!isPartitionSize(gpus)) {
      fault(board_.gpus, "a partition cannot have " + std::to_string(gpus) + " GPUs",
            "give the VM 1, 2, 4 or 8 GPUs of the board, or use `nvlink: disabled`");
    }
    const NvlinkBoard all = nvlinkBoard(topology_);
    if (!fabricOf(all).empty() && !fabricIsDriven(topology_, all)) {
      fault(board_.gpus,
            "`nvlink: partition` needs a fabric manager, but some " + fabricName() +
                " of the board have no driver",
            "load " + std::string(board_.switches.empty() ? "mlx5_core and " : "") +
                "NVIDIA's driver on the host and start nvidia-fabricmanager with FABRIC_MODE=1, or "
                "use `nvlink: disabled`");
    }
    addPartitionedGpus();
    result_.summary = "NVLink: a partition of " + ofBoard();
  }

  void addPartitionedGpus() {
    for (const MappedFunction& entry : mapping_.functions) {
      const bool onBoard = std::ranges::any_of(board_.gpus, [&](std::size_t number) {
        return topology_.functions[number].address == entry.pci;
      });
      if (onBoard) {
        result_.partition.push_back({entry.pci, entry.nvlinkModule});
      }
    }
  }

  void judgeDisabled() {
    if (count(fabricOf(board_)) > 0) {
      faultFabric();
    }
    result_.summary = "NVLink: disabled in the guest, by `vfpass guest-setup`, on " + ofBoard();
  }

  // Functions that the fabric manager of the host, or of a service VM, needs.
  void faultFabric() {
    const bool partition = mapping_.nvlink == NvlinkMode::partition;
    fault(fabricOf(board_),
          partition ? "`nvlink: partition` leaves the " + fabricName() +
                          " to a fabric manager outside the guest, which needs them, but the "
                          "mapping lists some of them"
                    : "`nvlink: disabled` does not use the board's " + fabricName() +
                          ", but the mapping lists some of them",
          "remove the " + fabricName() +
              " from the mapping, or list the whole board with `nvlink: all`");
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
