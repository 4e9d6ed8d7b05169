#include "judge_ping.hpp"

#include <arpa/inet.h>

#include <array>
#include <cmath>
#include <nlohmann/json.hpp>

#include "vfpass/agent/reply.hpp"

namespace vfpass::verify {
namespace {

using Json = nlohmann::json;

std::uint64_t count(const Json& report, const char* name) {
  const auto found = report.is_object() ? report.find(name) : report.end();
  return report.is_object() && found != report.end() && found->is_number_unsigned()
             ? found->get<std::uint64_t>()
             : 0;
}

std::string microseconds(const Json& report) {
  const auto found = report.find("median_microseconds");
  const double value = found != report.end() && found->is_number() ? found->get<double>() : 0;
  return std::isfinite(value) && value > 0 && value < 1e9
             ? ", " + std::to_string(std::lround(value)) + " us"
             : "";
}

}  // namespace

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
                  const std::string& address, const Json& report) {
  Finding finding{"peer-ip", subject, Outcome::warning, address + " answers through " + interface,
                  {},        {}};
  const std::uint64_t received = count(report, "received");
  if (agent::flagMember(report, "passed") && received > 0) {
    finding.outcome = Outcome::passed;
    finding.seen = std::to_string(received) + " of " + std::to_string(count(report, "sent")) +
                   " echo requests" + microseconds(report);
    return finding;
  }
  const std::string error = agent::textMember(report, "error");
  const std::string problem = agent::textMember(report, "problem");
  finding.seen = !error.empty() ? error : problem.empty() ? "no reply" : "no reply: " + problem;
  finding.remedy =
      "in the guests: give both interfaces addresses of one subnet (vfpass guest-setup), and let "
      "the firewall accept ICMP echo requests; on the host: the same vlan: for both entries";
  return finding;
}

Finding noAddressToPing(const std::string& subject, const std::string& reason) {
  return {"peer-ip", subject, Outcome::waived, "the other VF's IP address answers", reason, ""};
}

}  // namespace vfpass::verify
