#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "vfpass/mapping.hpp"
#include "vfpass/topology.hpp"

namespace vfpass::topology {

/// The GPUs of a host that NVSwitches connect, and those switches as far as they are PCI functions
/// (not since Blackwell). Numbers in Topology::functions.
struct NvlinkBoard {
  std::vector<std::size_t> gpus;  ///< empty: the host has no such board
  std::vector<std::size_t> switches;
};

NvlinkBoard nvlinkBoard(const Topology& topology);

/// `8 GPUs and 4 NVSwitches`
std::string describe(const NvlinkBoard& board);

/// Whether a fabric manager outside the guest can run: a driver has every NVSwitch.
bool switchesAreDriven(const Topology& topology, const NvlinkBoard& board);

/// Whether a fabric manager partition can have so many GPUs.
bool isPartitionSize(std::size_t gpus);

/// Why a mapping's GPUs could not initialize.
struct NvlinkFault {
  SourcePlace place;
  std::string message;  ///< without the place
  std::string remedy;   ///< lines
};

/// What becomes of the NVLink of a mapping's GPUs.
struct NvlinkJudgement {
  /// One line: `NVLink: all 8 GPUs and 4 NVSwitches of the board; ...`. Empty: there is nothing to
  /// say, because none of its GPUs is on a board with NVSwitches.
  std::string summary;
  std::vector<NvlinkFault> faults;
};

/// A GPU of a board with NVSwitches initializes only together with all GPUs and NVSwitches of the
/// board, as a partition that a fabric manager outside the guest has activated, or with NVLink
/// disabled in the guest; the mapping has to say which (`nvlink:`), or to name them all.
NvlinkJudgement judgeNvlink(const Topology& topology, const Mapping& mapping);

}  // namespace vfpass::topology
