#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "judge_transfer.hpp"
#include "vfpass/finding.hpp"
#include "vfpass/lease.hpp"

namespace vfpass::verify {

/// Both probes' reports on one session.
struct PairReports {
  nlohmann::json initiator;
  nlohmann::json target;
};

/// The error that caused the session to fail; empty: none. Untrusted.
std::string errorOf(const PairReports& reports);
/// The remedy that the same probe reports with it.
std::string remedyOf(const PairReports& reports);

/// Whether the two VFs are in the same network, from link layer and VLAN of both leases.
Finding judgeNetwork(const std::string& subject, const Lease& initiator, const Lease& target);

/// Whether messages arrived in both directions.
Finding judgeReach(const std::string& subject, const PairReports& reports);

/// As judgeTransfer(); in addition, the guest that owns the written memory must itself report that
/// it checked all bytes.
Finding judgePairTransfer(const Transfer& transfer, const PairReports& reports,
                          std::vector<Figure>& figures);

/// As judgeLatency(); in addition, the target must report that its part passed.
Finding judgePairLatency(const Transfer& latency, const PairReports& reports,
                         std::vector<Figure>& figures);

/// As judgeSizes(); in addition, the target must report that its part passed.
Finding judgePairSizes(const Transfer& transfer, const PairReports& reports,
                       std::vector<Figure>& figures);

}  // namespace vfpass::verify
