#pragma once

#include <iosfwd>
#include <string>
#include <vector>

#include "vfpass/lease.hpp"
#include "vfpass/report/style.hpp"
#include "vfpass/topology.hpp"

namespace vfpass::report {

/// What `vfpass topo` shows: the host, and which domains lease its VFs and functions.
struct TopologyReport {
  Topology topology;
  std::vector<Lease> leases;
};

/// A matrix of GPUs and PFs in the terms of nvidia-smi, then one line per rail and per PF.
void writeTopologyMatrix(std::ostream& out, const TopologyReport& report, const Style& style);

/// Host bridges, switches, GPUs, NICs and NVSwitches; names only leased VFs and counts the others.
void writeTopologyTree(std::ostream& out, const TopologyReport& report, const Style& style);

/// Every function. JSON: docs/json/topo.schema.json.
void writeTopologyJson(std::ostream& out, const TopologyReport& report);

/// For Graphviz.
void writeTopologyDot(std::ostream& out, const TopologyReport& report);

/// A self-contained picture: no script, no external font or style.
void writeTopologySvg(std::ostream& out, const TopologyReport& report);

/// The picture of the host, with that of a guest next to it under its own title.
void writeTopologySvg(std::ostream& out, const TopologyReport& host, const TopologyReport& guest,
                      const std::string& guestTitle);

}  // namespace vfpass::report
