#include "judge_rdma_cm.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "vfpass/agent/reply.hpp"

namespace vfpass::verify {
namespace {

using Json = nlohmann::json;

constexpr const char* key = "peer-rdma-cm";
constexpr const char* expected = "rdma_cm connects both IP addresses, and data arrives";

const Json& object(const Json& json, const char* name) {
  static const Json none = Json::object();
  const auto found = json.is_object() ? json.find(name) : json.end();
  return json.is_object() && found != json.end() ? *found : none;
}

const Json& onlyRun(const Json& report) {
  static const Json none = Json::object();
  const Json& runs = agent::listMember(report, "runs");
  return runs.size() == 1 ? runs.front() : none;
}

std::uint64_t bytesChecked(const Json& run) {
  const Json& bytes = object(object(run, "owner"), "bytes_checked");
  return bytes.is_number_unsigned() ? bytes.get<std::uint64_t>() : 0;
}

}  // namespace

std::string whyNoRdmaCm(const GuestView& view, const RdmaPort& port) {
  if (!view.librdmacm) {
    return "librdmacm is not installed in the guest (apt-get install librdmacm1)";
  }
  for (const GuestRdmaDevice& device : view.rdmaDevices) {
    const auto found = std::ranges::find(device.ports, port.number, &GuestPort::number);
    if (device.name == port.device && found != device.ports.end() && !found->ipAddresses.empty()) {
      return {};
    }
  }
  return "no IP address on the interface of " + port.device;
}

Finding rdmaCmNotTried(const std::string& subject, const std::string& reason) {
  return {key, subject, Outcome::waived, expected, reason, ""};
}

Finding judgeRdmaCm(const std::string& subject, std::uint64_t bytes, const PairReports& reports) {
  Finding finding{key, subject, Outcome::failed, expected, {}, {}};
  const std::string error = errorOf(reports);
  const Json& addresses = object(onlyRun(reports.initiator), "rdma_cm");
  const std::string source = agent::textMember(addresses, "source");
  const std::uint64_t checked = bytesChecked(onlyRun(reports.target));
  if (error.empty() && !source.empty() && checked >= bytes &&
      agent::flagMember(reports.initiator, "passed") &&
      agent::flagMember(reports.target, "passed")) {
    finding.outcome = Outcome::passed;
    finding.seen = source + " to " + agent::textMember(addresses, "destination") + ", " +
                   std::to_string(checked) + " bytes right";
    return finding;
  }
  // Without an error the bytes are wrong. A connection that fails is no failure of RDMA: NCCL and
  // the other checks do not use rdma_cm.
  finding.outcome = error.empty() ? Outcome::failed : Outcome::warning;
  finding.seen =
      !error.empty() ? error : "the target's probe checked " + std::to_string(checked) + " bytes";
  finding.remedy = remedyOf(reports);
  if (finding.remedy.empty()) {
    finding.remedy = "check that both guests run the probe of this vfpass build";
  }
  return finding;
}

}  // namespace vfpass::verify
