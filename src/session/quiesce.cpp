#include "vfpass/session/quiesce.hpp"

#include "vfpass/agent/device_use.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/deadlines.hpp"

namespace vfpass::session {
namespace {

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
    session.warn(domain + ": not checking whether the guest uses the devices (--force)");
    return;
  }
  agent::Agent agent(session.hypervisor(), plan.domain, plan.domainName, deadlines::deviceUse);
  std::vector<std::string> users;
  std::vector<std::string> unknown;
  for (const auto& lease : leases) {
    const auto use = agent::findUsers(agent, lease);
    for (const auto& user : use.users) {
      users.push_back(lease.entry + ": " + user);
    }
    for (const auto& reason : use.notObservable) {
      unknown.push_back(lease.entry + ": " + reason);
    }
  }
  if (!users.empty()) {
    throw Error(domain + ": the guest is using the devices: " + join(users, "; "),
                "stop using them in the guest, or unplug them with --force", ExitCode::refused);
  }
  if (!unknown.empty()) {
    throw Error(
        domain + ": cannot tell whether the guest is using the devices: " + join(unknown, "; "),
        "check in the guest, then unplug with --force", ExitCode::unverified);
  }
}

}  // namespace vfpass::session
