#include <algorithm>
#include <array>
#include <map>

#include "vfpass/topology/nvlink_topology.hpp"
#include "vfpass/topology/rails.hpp"

namespace vfpass::topology {
namespace {

constexpr std::uint16_t nvidia = 0x10de;
constexpr std::uint32_t controller3d = 0x0302;

// GPUs of boards whose NVSwitches are not PCI functions of the host: HGX B200 and B300. The device
// ids were not checked against hardware.
bool isOnSwitchlessBoard(const TopologyFunction& gpu) {
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
    const TopologyFunction& function = topology.functions[gpu];
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

}  // namespace vfpass::topology
