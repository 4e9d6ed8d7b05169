#pragma once

#include <iosfwd>
#include <string>
#include <vector>

#include "vfpass/lease.hpp"
#include "vfpass/report/table.hpp"
#include "vfpass/topology.hpp"
#include "vfpass/topology/distance.hpp"

namespace vfpass::report {

/// What `vfpass topo` shows: the host, and which domains lease its VFs and functions.
struct TopologyReport {
  Topology topology;
  std::vector<Lease> leases;
  std::string origin = {};  ///< host and date, in words, for pictures; may be empty
};

/// A matrix of GPUs and PFs in the terms of nvidia-smi, then one line per rail and per PF.
void writeTopologyMatrix(std::ostream& out, const TopologyReport& report, const Style& style);

/// Host bridges, switches, GPUs, NICs and NVSwitches; names only leased VFs and counts the others.
void writeTopologyTree(std::ostream& out, const TopologyReport& report, const Style& style);

/// Every function. JSON: docs/json/topo.schema.json.
void writeTopologyJson(std::ostream& out, const TopologyReport& report);

/// A self-contained picture: no script, no external font or style.
void writeTopologySvg(std::ostream& out, const TopologyReport& report);

/// The picture of the host, with that of a guest next to it under its own title.
void writeTopologySvg(std::ostream& out, const TopologyReport& host, const TopologyReport& guest,
                      const std::string& guestTitle);

/// `vfpass topo --html`: the picture, and the same in words (writeTopologyMatrix or
/// writeTopologyTree). `origin`: host and versions, in words; may be empty.
void writeTopologyHtml(std::ostream& out, const std::string& title, const std::string& svg,
                       const std::string& words, const std::string& origin = "");

/// A title line, then the matrix in the terms of `nvidia-smi topo -m`. Writes nothing for fewer
/// than two devices.
void writeDeviceMatrix(std::ostream& out, const std::string& title,
                       const topology::DeviceMatrix& matrix, const Style& style);

/// A host device with its address in a guest.
struct GuestDevice {
  std::size_t function = 0;  ///< in Topology::functions: the VF, or its PF if the VF does not exist
  PciAddress address;        ///< in the guest
  int numaNode = -1;         ///< in the guest; -1: unknown
};

/// A file for NCCL_TOPO_FILE on the host: GPUs and NICs below their switches and NUMA nodes; NCCL
/// detects the rest. Throws Error if the file exceeds NCCL's limit of nodes.
void writeNcclTopology(std::ostream& out, const Topology& topology);

/// The same for a guest: its devices at their guest addresses, with the distances and link speeds
/// of the host, below switches that exist only in this file. A virtual switch reports 2.5 GT/s x1,
/// and NCCL believes it. The host's NUMA nodes get the guest's numbers, in order if the guest
/// reports none. Each node claims all CPUs; NCCL reduces that to the CPUs that a process may use.
void writeGuestNcclTopology(std::ostream& out, const Topology& topology,
                            const std::vector<GuestDevice>& devices);

}  // namespace vfpass::report
