#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "vfpass/mapping.hpp"
#include "vfpass/topology.hpp"

namespace vfpass::topology {

/// The GPUs of a host that NVSwitches connect, and those NVSwitches that are PCI functions (none
/// since Blackwell). Numbers are indexes in Topology::functions.
struct NvlinkBoard {
  std::vector<std::size_t> gpus;  ///< empty: the host has no such board
  std::vector<std::size_t> switches;
};

NvlinkBoard nvlinkBoard(const Topology& topology);

/// `8 GPUs and 4 NVSwitches`
std::string describe(const NvlinkBoard& board);

/// True when a fabric manager outside the guest can run: every NVSwitch is bound to a driver.
bool switchesAreDriven(const Topology& topology, const NvlinkBoard& board);

/// True when a fabric manager partition can have this number of GPUs.
bool isPartitionSize(std::size_t gpus);

/// A reason why a mapping's GPUs could not initialize.
struct NvlinkFault {
  SourcePlace place;
  std::string message;  ///< without the place
  std::string remedy;   ///< may have several lines
};

/// How NVLink is set up for a mapping's GPUs.
struct NvlinkJudgement {
  /// One line: `NVLink: all 8 GPUs and 4 NVSwitches of the board; ...`. Empty if no GPU of the
  /// mapping is on a board with NVSwitches.
  std::string summary;
  std::vector<NvlinkFault> faults;
};

/// A GPU of a board with NVSwitches initializes only together with all GPUs and NVSwitches of the
/// board, as a partition activated by a fabric manager outside the guest, or with NVLink disabled
/// in the guest. The mapping must state which one applies (`nvlink:`), or list all of them.
NvlinkJudgement judgeNvlink(const Topology& topology, const Mapping& mapping);

}  // namespace vfpass::topology
