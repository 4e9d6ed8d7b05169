#include <thread>

#include "verification_steps.hpp"
#include "vfpass/base/shell.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/report/verify_report.hpp"
#include "vfpass/session/running_guest.hpp"
#include "vfpass/session/started_queue.hpp"
#include "vfpass/session/stop_signals.hpp"
#include "vfpass/state/locks.hpp"

namespace vfpass::session {
namespace {

bool isVerifiedOnStart(Session& session, const DomainDescription& domain) {
  return verifyPolicyOf(session, domain).onStart;
}

// A VM whose verification could not run gets a report that says so: its last report is otherwise
// older than its start.
void reportUnverified(Session& session, const DomainDescription& domain, const std::string& reason,
                      const std::string& remedy) {
  VerifyReport report;
  report.domain = domain.uuid;
  report.domainName = domain.name;
  report.time = reportTime();
  report.findings.push_back(seenByHost(
      {"on-start", "", Outcome::notObservable, "a verification after the start", reason, remedy}));
  report::boundTexts(report);
  try {
    keepReport(session, report);
  } catch (const Error& error) {
    session.warn(error.what());
  }
  session.warn("VM " + printable(domain.name) + ": not verified: " + reason);
}

// Nothing is worth waiting for unless the VM runs and its mapping asks for the verification. While
// libvirt does not answer, every VM waits.
bool isReady(Session& session, const Uuid& uuid) {
  StopSignals::throwIfAsked();
  try {
    const auto domain = session.hypervisor().findDomain(toString(uuid));
    if (domain && domain->active && isVerifiedOnStart(session, *domain)) {
      session.hypervisor().askAgent(uuid, R"({"execute": "guest-ping"})", deadlines::agentPing);
    }
    return true;
  } catch (const Error& error) {
    session.verbose(error.what());
    return false;
  }
}

void verifyStartedVm(Session& session, const Uuid& uuid, const VerifyRequest& request) {
  std::optional<DomainDescription> domain;
  try {
    domain = session.hypervisor().findDomain(toString(uuid));
    if (!domain || !isVerifiedOnStart(session, *domain)) {
      return;
    }
    session.operations().begin(events::Operation::verify);
    session.operations().setDomain(uuid, domain->name);
    const auto report = verifyVm(session, runningGuest(session, toString(uuid), "verify"), request);
    session.note("VM " + printable(domain->name) + ": " + std::string(toString(verdict(report))));
  } catch (const Error& error) {
    if (domain) {
      session.operations().end({events::Result::unverified, error.what(), error.remedy()});
      reportUnverified(session, *domain, error.what(), error.remedy());
    } else {
      session.warn(error.what());
    }
  }
}

void giveUp(Session& session, const Uuid& uuid, const std::string& reason) {
  try {
    const auto domain = session.hypervisor().findDomain(toString(uuid));
    if (domain && isVerifiedOnStart(session, *domain)) {
      reportUnverified(session, *domain, reason,
                       "run `vfpass verify " + shellArgument(domain->name) + "`");
    }
  } catch (const Error& error) {
    session.warn(error.what());
  }
}

}  // namespace

// Run by systemd after starts, for VMs whose mapping has `on-start: report`. A VM that cannot be
// verified gets a report and does not stop the others; the exit status is not used.
void verifyStarted(Session& session, const VerifyRequest& request) {
  const std::filesystem::path run = session.options().runDirectory;
  const auto lock = state::FileLock::tryAcquire(run / "verify-started.lock");
  if (!lock) {
    session.note("another vfpass is verifying the VMs that have started");
    return;
  }
  VerifyRequest now = request;  // without waiting again
  now.wait = std::chrono::seconds(0);
  const StartedWork work{
      [&](const Uuid& uuid) { return isReady(session, uuid); },
      [&](const Uuid& uuid) { verifyStartedVm(session, uuid, now); },
      [&](const Uuid& uuid, const std::string& reason) { giveUp(session, uuid, reason); },
      [] { return std::chrono::steady_clock::now(); },
      [] { std::this_thread::sleep_for(std::chrono::seconds(1)); }};
  verifyStartedVms(run, request.wait, work);
}

}  // namespace vfpass::session
