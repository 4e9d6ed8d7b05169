#pragma once

#include <iosfwd>
#include <string>
#include <vector>

#include "vfpass/lease.hpp"
#include "vfpass/report/style.hpp"
#include "vfpass/topology.hpp"

namespace vfpass::report {

/// What `vfpass topo` shows: the host, and whose VFs and functions are leased to whom.
struct TopologyReport {
  Topology topology;
  std::vector<Lease> leases;
};

/// GPUs against PFs in the words of nvidia-smi, then one line for each rail and each PF.
void writeTopologyMatrix(std::ostream& out, const TopologyReport& report, const Style& style);

/// Host bridges, switches, GPUs, NICs and NVSwitches; VFs are counted, leased ones named.
void writeTopologyTree(std::ostream& out, const TopologyReport& report, const Style& style);

/// Every function. docs/json/topo.schema.json.
void writeTopologyJson(std::ostream& out, const TopologyReport& report);

/// For Graphviz.
void writeTopologyDot(std::ostream& out, const TopologyReport& report);

/// A picture that stands alone: no script, no font or style from elsewhere.
void writeTopologySvg(std::ostream& out, const TopologyReport& report);

/// The host's picture, and a guest's beside it under a title of its own.
void writeTopologySvg(std::ostream& out, const TopologyReport& host, const TopologyReport& guest,
                      const std::string& guestTitle);

}  // namespace vfpass::report
