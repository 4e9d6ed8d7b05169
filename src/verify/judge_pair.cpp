#include "judge_pair.hpp"

#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>

#include "vfpass/agent/reply.hpp"
#include "vfpass/base/text.hpp"

namespace vfpass::verify {
namespace {

using Json = nlohmann::json;

std::string describeNetwork(const Lease& lease) {
  if (vfOf(lease).infiniband) {
    return "InfiniBand";
  }
  const auto vlan = acceptedSettings(lease).vlan;
  return vlan && vlan->id != 0 ? "Ethernet, VLAN " + std::to_string(vlan->id) + " (" +
                                     std::string(toString(vlan->protocol)) + ")"
                               : "Ethernet, no VLAN";
}

// Each side also reports the other's failure, with this prefix (src/probe/channel/channel.cpp). The
// error without it is the cause.
const Json& failedReport(const PairReports& reports) {
  const std::string near = agent::textMember(reports.initiator, "error");
  const std::string far = agent::textMember(reports.target, "error");
  const auto isCause = [](const std::string& error) {
    return !error.empty() && error.find("the other side") != 0;
  };
  return isCause(near) || (!isCause(far) && !near.empty()) ? reports.initiator : reports.target;
}

// The last run is the one of interest: with `besideHost`, the host memory run comes first.
const Json& lastRun(const Json& report, std::size_t wanted) {
  static const Json none = Json::object();
  const Json& runs = agent::listMember(report, "runs");
  return runs.size() == wanted ? runs.back() : none;
}

const Json& object(const Json& json, const char* name) {
  static const Json none = Json::object();
  const auto found = json.is_object() ? json.find(name) : json.end();
  return json.is_object() && found != json.end() ? *found : none;
}

std::optional<double> microseconds(const Json& run, const char* name) {
  const Json& value = object(object(run, "latency"), name);
  const double figure = value.is_number() ? value.get<double>() : 0;
  return std::isfinite(figure) && figure > 0 ? std::optional(figure) : std::nullopt;
}

/// Combines the finding from the initiator's report with the target's own report. Adds the figures
/// only if both passed. `targetProblem` is empty if the target's report confirms the transfer.
Finding confirmed(Finding finding, const PairReports& reports, const std::string& targetProblem,
                  const std::vector<Figure>& measured, std::vector<Figure>& figures) {
  finding.key = "peer-" + finding.key;
  if (finding.outcome != Outcome::passed) {
    const std::string error = errorOf(reports);
    finding.seen = error.empty() ? finding.seen : error;
    return finding;
  }
  if (!targetProblem.empty()) {
    finding.outcome = Outcome::failed;
    finding.seen = "the target's own probe " + targetProblem;
    finding.remedy = "check that both guests run the probe of this vfpass build";
    return finding;
  }
  figures.insert(figures.end(), measured.begin(), measured.end());
  return finding;
}

}  // namespace

std::string errorOf(const PairReports& reports) {
  return agent::textMember(failedReport(reports), "error");
}

std::string remedyOf(const PairReports& reports) {
  return agent::textMember(failedReport(reports), "remedy");
}

Finding judgeNetwork(const std::string& subject, const Lease& initiator, const Lease& target) {
  const std::string near = describeNetwork(initiator);
  const std::string far = describeNetwork(target);
  const bool same = near == far;
  return seenByHost(
      {"peer-network", subject, same ? Outcome::passed : Outcome::failed, "both VFs in one network",
       same ? near : near + ", and " + far,
       same ? ""
            : "set the same vlan: for both entries in their mappings, or choose another peer"});
}

Finding judgeReach(const std::string& subject, const PairReports& reports) {
  Finding finding{"peer-reach", subject, Outcome::failed, "messages arrive in both directions",
                  {},           {}};
  const Json& run = lastRun(reports.initiator, 1);
  const auto median = microseconds(run, "median");
  const std::string error = errorOf(reports);
  if (!error.empty() || !median || !agent::flagMember(reports.initiator, "passed") ||
      !agent::flagMember(reports.target, "passed")) {
    finding.seen = error.empty() ? "no report" : error;
    finding.remedy =
        "check that each guest's device is up, with an address in the same subnet and the same MTU "
        "(vfpass guest-setup), and that the PFs are on one switch; in the guests, look at "
        "rdma link show and ip neighbour show";
    return finding;
  }
  finding.outcome = Outcome::passed;
  finding.seen = std::to_string(std::lround(*median)) + " us in one direction";
  return finding;
}

Finding judgePairTransfer(const Transfer& transfer, const PairReports& reports,
                          std::vector<Figure>& figures) {
  std::vector<Figure> measured;
  Finding finding = judgeTransfer(transfer, reports.initiator, measured);
  const Json& owner = object(lastRun(reports.target, transfer.besideHost ? 2 : 1), "owner");
  const Json& bytes = object(owner, "bytes_checked");
  const std::uint64_t checked = bytes.is_number_unsigned() ? bytes.get<std::uint64_t>() : 0;
  const bool targetOwns = transfer.operation == "write";
  const bool right =
      agent::flagMember(reports.target, "passed") && (!targetOwns || checked >= transfer.bytes());
  return confirmed(
      std::move(finding), reports,
      right ? ""
            : "checked " + std::to_string(checked) + " bytes and did not report all of them right",
      measured, figures);
}

Finding judgePairLatency(const Transfer& latency, const PairReports& reports,
                         std::vector<Figure>& figures) {
  std::vector<Figure> measured;
  Finding finding = judgeLatency(latency, reports.initiator, measured);
  return confirmed(std::move(finding), reports,
                   agent::flagMember(reports.target, "passed") ? "" : "did not report a pass",
                   measured, figures);
}

Finding judgePairSizes(const Transfer& transfer, const PairReports& reports,
                       std::vector<Figure>& figures) {
  std::vector<Figure> measured;
  Finding finding = judgeSizes(transfer, reports.initiator, measured);
  return confirmed(std::move(finding), reports,
                   agent::flagMember(reports.target, "passed") ? "" : "did not report a pass",
                   measured, figures);
}

}  // namespace vfpass::verify
