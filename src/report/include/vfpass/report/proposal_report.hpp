#pragma once

#include <iosfwd>
#include <string>

#include "vfpass/report/table.hpp"
#include "vfpass/topology/propose_mapping.hpp"

namespace vfpass::report {

/// A mapping file for `vm` as `vfpass init` prints it, with the reasons as comments. `command` is
/// the command line that requested it. JSON: docs/json/init.schema.json.
struct ProposalReport {
  std::string vm;
  std::string command;
  std::string schemaFile;  ///< of mappings; editors that read it complete and check the file
  Topology topology;
  topology::Proposal proposal;
};

void writeProposal(std::ostream& out, const ProposalReport& report, const Style& style);

}  // namespace vfpass::report
