#include "judge_pair.hpp"

#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "vfpass/base/json_reader.hpp"
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
JsonReader failedReport(const PairReports& reports) {
  const std::string near = JsonReader(reports.initiator)["error"].textOr("");
  const std::string far = JsonReader(reports.target)["error"].textOr("");
  const auto isCause = [](const std::string& error) {
    return !error.empty() && error.find("the other side") != 0;
  };
  return JsonReader(isCause(near) || (!isCause(far) && !near.empty()) ? reports.initiator
                                                                      : reports.target);
}

// The last run is the one of interest: with `besideHost`, the host memory run comes first.
JsonReader lastRun(const Json& report, std::size_t wanted) {
  static const Json none = Json::object();
  const auto runs = JsonReader(report)["runs"].listOrEmpty();
  return runs.size() == wanted ? runs.back() : JsonReader(none);
}

// By the run's owner of the memory.
std::uint64_t bytesChecked(const JsonReader& run) {
  return run["owner"]["bytes_checked"].numberOr(0);
}

bool hasPassed(const Json& report) { return JsonReader(report)["passed"].flagOr(false); }

/// Combines the finding from the initiator's report with the target's own report. Adds the figures
/// only if both passed. `targetProblem` is empty if the target's report confirms the transfer. In a
/// loopback there is nothing to combine.
Finding confirmed(Finding finding, const PairReports& reports, const std::string& targetProblem,
                  const std::vector<Figure>& measured, std::vector<Figure>& figures) {
  if (reports.loopback) {
    figures.insert(figures.end(), measured.begin(), measured.end());
    return finding;
  }
  finding.key = "peer-" + finding.key;
  if (finding.outcome != Outcome::passed) {
    const std::string error = errorOf(reports);
    finding.seen = error.empty() ? finding.seen : error;
    return finding;
  }
  if (!targetProblem.empty()) {
    finding.outcome = Outcome::failed;
    finding.seen = "the target's own probe " + targetProblem;
    finding.remedy = otherBuilds;
    return finding;
  }
  figures.insert(figures.end(), measured.begin(), measured.end());
  return finding;
}

Finding confirmedByPass(Finding (*judge)(const Transfer&, const Json&, std::vector<Figure>&),
                        const Transfer& transfer, const PairReports& reports,
                        std::vector<Figure>& figures) {
  std::vector<Figure> measured;
  Finding finding = judge(transfer, reports.initiator, measured);
  return confirmed(std::move(finding), reports,
                   hasPassed(reports.target) ? "" : "did not report a pass", measured, figures);
}

constexpr const char* rdmaCmKey = "peer-rdma-cm";
constexpr const char* rdmaCmExpected = "rdma_cm connects both IP addresses, and data arrives";

// `, 87 us` from a report on ping; empty if it has no valid time.
std::string roundTrip(const JsonReader& report) {
  const double value = plausibleMicroseconds(report["median_microseconds"]);
  return value > 0 ? ", " + latencyText(value) : "";
}

}  // namespace

std::string errorOf(const PairReports& reports) {
  return failedReport(reports)["error"].textOr("");
}

std::string remedyOf(const PairReports& reports) {
  return failedReport(reports)["remedy"].textOr("");
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

Finding judgeReach(const std::string& subject, const PairReports& reports,
                   const std::string& guestSetups) {
  Finding finding{"peer-reach", subject, Outcome::failed, "messages arrive in both directions",
                  {},           {}};
  const double median = plausibleMicroseconds(lastRun(reports.initiator, 1)["latency"]["median"]);
  const std::string error = errorOf(reports);
  if (!error.empty() || median <= 0 || !hasPassed(reports.initiator) ||
      !hasPassed(reports.target)) {
    finding.seen = error.empty() ? "no report" : error;
    finding.remedy =
        "check that each guest's device is up, with an address in the same subnet and the same MTU "
        "(" +
        guestSetups +
        "), and that the PFs are on one switch; in the guests, look at "
        "rdma link show and ip neighbour show";
    return finding;
  }
  finding.outcome = Outcome::passed;
  finding.seen = latencyText(median) + " in one direction";
  return finding;
}

Finding judgePairTransfer(const Transfer& transfer, const PairReports& reports,
                          std::vector<Figure>& figures) {
  std::vector<Figure> measured;
  Finding finding = judgeTransfer(transfer, reports.initiator, measured);
  const std::uint64_t checked = bytesChecked(lastRun(reports.target, transfer.besideHost ? 2 : 1));
  const bool targetOwns = transfer.operation == "write";
  const bool right = hasPassed(reports.target) && (!targetOwns || checked >= transfer.bytes());
  return confirmed(
      std::move(finding), reports,
      right ? ""
            : "checked " + std::to_string(checked) + " bytes and did not report all of them right",
      measured, figures);
}

Finding judgePairLatency(const Transfer& latency, const PairReports& reports,
                         std::vector<Figure>& figures) {
  return confirmedByPass(judgeLatency, latency, reports, figures);
}

Finding judgePairSizes(const Transfer& transfer, const PairReports& reports,
                       std::vector<Figure>& figures) {
  return confirmedByPass(judgeSizes, transfer, reports, figures);
}

std::string whyNoRdmaCm(const GuestView& view, const RdmaPort& port) {
  if (!view.librdmacm) {
    return "librdmacm is not installed in the guest (apt-get install librdmacm1)";
  }
  const GuestPort* found = findPort(view, port.device, port.number);
  return found != nullptr && !found->ipAddresses.empty()
             ? ""
             : "no IP address on the interface of " + port.device;
}

Finding rdmaCmNotTried(const std::string& subject, const std::string& reason) {
  return {rdmaCmKey, subject, Outcome::waived, rdmaCmExpected, reason, ""};
}

Finding judgeRdmaCm(const std::string& subject, std::uint64_t bytes, const PairReports& reports) {
  Finding finding{rdmaCmKey, subject, Outcome::failed, rdmaCmExpected, {}, {}};
  const std::string error = errorOf(reports);
  const JsonReader addresses = lastRun(reports.initiator, 1)["rdma_cm"];
  const std::string source = addresses["source"].textOr("");
  const std::uint64_t checked = bytesChecked(lastRun(reports.target, 1));
  if (error.empty() && !source.empty() && checked >= bytes && hasPassed(reports.initiator) &&
      hasPassed(reports.target)) {
    finding.outcome = Outcome::passed;
    finding.seen = source + " to " + addresses["destination"].textOr("") + ", " +
                   std::to_string(checked) + " bytes right";
    return finding;
  }
  // Without an error the bytes are wrong. A connection that fails is not a failure of RDMA: NCCL
  // and the other checks do not use rdma_cm.
  finding.outcome = error.empty() ? Outcome::failed : Outcome::warning;
  finding.seen =
      !error.empty() ? error : "the target's probe checked " + std::to_string(checked) + " bytes";
  finding.remedy = remedyOf(reports);
  if (finding.remedy.empty()) {
    finding.remedy = otherBuilds;
  }
  return finding;
}

std::string readableGid(const std::string& gid) {
  in6_addr bytes{};
  std::array<char, INET6_ADDRSTRLEN> text{};
  const bool valid =
      gid.size() <= INET6_ADDRSTRLEN && ::inet_pton(AF_INET6, gid.c_str(), &bytes) == 1;
  return valid ? ::inet_ntop(AF_INET6, &bytes, text.data(), text.size()) : gid;
}

std::optional<std::string> addressOfGid(const std::string& gid) {
  in6_addr bytes{};
  if (gid.size() > INET6_ADDRSTRLEN || ::inet_pton(AF_INET6, gid.c_str(), &bytes) != 1) {
    return std::nullopt;
  }
  std::array<char, INET6_ADDRSTRLEN> text{};
  const bool four = IN6_IS_ADDR_V4MAPPED(&bytes) != 0;
  const void* address = four ? static_cast<const void*>(&bytes.s6_addr[12]) : &bytes;
  ::inet_ntop(four ? AF_INET : AF_INET6, address, text.data(), text.size());
  return text.data();
}

Finding judgePing(const std::string& subject, const std::string& interface,
                  const std::string& address, const Json& json, const std::string& guestSetups) {
  Finding finding{"peer-ip", subject, Outcome::warning, address + " answers through " + interface,
                  {},        {}};
  const JsonReader report(json);
  const std::uint64_t received = report["received"].numberOr(0);
  if (report["passed"].flagOr(false) && received > 0) {
    finding.outcome = Outcome::passed;
    finding.seen = std::to_string(received) + " of " + std::to_string(report["sent"].numberOr(0)) +
                   " echo requests" + roundTrip(report);
    return finding;
  }
  const std::string error = report["error"].textOr("");
  const std::string problem = report["problem"].textOr("");
  finding.seen = !error.empty() ? error : problem.empty() ? "no reply" : "no reply: " + problem;
  finding.remedy =
      "in the guests: give both interfaces addresses of one subnet (" + guestSetups +
      "), and let "
      "the firewall accept ICMP echo requests; on the host: the same vlan: for both entries";
  return finding;
}

Finding noAddressToPing(const std::string& subject, const std::string& reason) {
  return {"peer-ip", subject, Outcome::waived, "the other VF's IP address answers", reason, ""};
}

}  // namespace vfpass::verify
