#include "quiesce.hpp"

#include "vfpass/base/text.hpp"
#include "vfpass/guest/device_use.hpp"

namespace vfpass::cli {
namespace {

constexpr std::chrono::seconds agentPatience{60};

std::vector<Lease> unpluggedBy(const Plan& plan) {
  std::vector<Lease> leases;
  for (const auto& step : plan.steps) {
    if (const auto* unplug = std::get_if<UnplugDevice>(&step.action)) {
      leases.push_back(unplug->lease);
    }
  }
  return leases;
}

}  // namespace

void requireUnused(Session& session, const Plan& plan, bool force) {
  const auto leases = unpluggedBy(plan);
  if (leases.empty()) {
    return;
  }
  const std::string domain = "domain " + printable(plan.domainName);
  if (force) {
    session.warn("the guest of " + domain + " is not asked who uses the devices (--force)");
    return;
  }
  guest::Agent agent(session.hypervisor(), plan.domain, plan.domainName, agentPatience);
  std::vector<std::string> users;
  std::vector<std::string> unknown;
  for (const auto& lease : leases) {
    const auto use = guest::findUsers(agent, lease);
    for (const auto& user : use.users) {
      users.push_back(lease.vfName + ": " + user);
    }
    for (const auto& reason : use.notObservable) {
      unknown.push_back(lease.vfName + ": " + reason);
    }
  }
  if (!users.empty()) {
    throw Error("the guest of " + domain + " uses what would be unplugged: " + join(users, "; "),
                "stop that in the guest, or unplug all the same with --force", ExitCode::refused);
  }
  if (!unknown.empty()) {
    throw Error("whether the guest of " + domain +
                    " uses what would be unplugged cannot be seen: " + join(unknown, "; "),
                "look there yourself, then unplug with --force", ExitCode::unverified);
  }
}

}  // namespace vfpass::cli
