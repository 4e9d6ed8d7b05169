#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "vfpass/mapping.hpp"
#include "vfpass/topology.hpp"
#include "vfpass/topology/fabric_partitions.hpp"

namespace vfpass::topology {

/// The GPUs of a host that NVSwitches connect, and the functions through which a fabric manager
/// manages these: NVSwitches or, since Blackwell, ConnectX functions of the board. Numbers are
/// indexes in Topology::functions.
struct NvlinkBoard {
  std::vector<std::size_t> gpus;  ///< empty: the host has no such board
  std::vector<std::size_t> switches;
  std::vector<std::size_t> managers;  ///< FunctionRole::nvlinkManagement
};

/// All of the host, which may be two baseboards.
NvlinkBoard nvlinkBoard(const Topology& topology);

/// The baseboards of which each works alone: two of DGX-2 and HGX A100 16-GPU, each with 8 GPUs and
/// its own NVSwitches, otherwise all of nvlinkBoard(). A VM with one of the two is documented as
/// full passthrough (NVIDIA's Fabric Manager User Guide); the NVLinks between the two are then not
/// used.
std::vector<NvlinkBoard> nvlinkBaseboards(const Topology& topology);

/// The functions that a fabric manager needs.
std::vector<std::size_t> fabricOf(const NvlinkBoard& board);

/// `8 GPUs and 4 NVSwitches`
std::string describe(const NvlinkBoard& board);

/// True when a fabric manager outside the guest can run: there are functions that it needs, and all
/// are bound to a driver.
bool fabricIsDriven(const Topology& topology, const NvlinkBoard& board);

/// True when a fabric manager partition can have this number of GPUs.
bool isPartitionSize(std::size_t gpus);

/// A reason why a mapping's GPUs could not initialize.
struct NvlinkFault {
  SourcePlace place;
  std::string message;  ///< without the place
  std::string remedy;   ///< may have several lines
  /// Functions of the board that the mapping lacks, which the remedy adds.
  std::vector<PciAddress> missing = {};
};

/// How NVLink is set up for a mapping's GPUs.
struct NvlinkJudgement {
  /// One line: `NVLink: all 8 GPUs and 4 NVSwitches of the board; ...`. Empty if no GPU of the
  /// mapping is on a board with NVSwitches.
  std::string summary;
  std::vector<NvlinkFault> faults;
  /// Of a mapping with `nvlink: partition`: the GPUs of the board, for judgePartition().
  std::vector<PartitionedGpu> partition = {};
};

/// A GPU of a board with NVSwitches initializes only together with all GPUs and NVSwitches of the
/// (base)board, as a partition activated by a fabric manager outside the guest, or with NVLink
/// disabled in the guest. The mapping must state which one applies (`nvlink:`), or list all of
/// them.
NvlinkJudgement judgeNvlink(const Topology& topology, const Mapping& mapping);

}  // namespace vfpass::topology
