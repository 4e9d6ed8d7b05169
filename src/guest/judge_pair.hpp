#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "judge_transfer.hpp"
#include "vfpass/finding.hpp"
#include "vfpass/lease.hpp"

namespace vfpass::guest {

/// What both probes said of one session.
struct PairReports {
  nlohmann::json initiator;
  nlohmann::json target;
};

/// Can the two VFs reach each other at all? The host's own knowledge of both leases: link layer and
/// VLAN.
Finding judgeNetwork(const std::string& subject, const Lease& initiator, const Lease& target);

/// Did messages come back?
Finding judgeReach(const std::string& subject, const PairReports& reports);

/// As judgeTransfer, and whoever owns the memory that was written must have found it right by its
/// own word, not by the other guest's.
Finding judgePairTransfer(const Transfer& transfer, const PairReports& reports,
                          std::vector<Figure>& figures);

/// As judgeLatency, and the target must have found its part right, too.
Finding judgePairLatency(const Transfer& latency, const PairReports& reports,
                         std::vector<Figure>& figures);

}  // namespace vfpass::guest
