#include <set>
#include <thread>

#include "own_processes.hpp"
#include "verification_steps.hpp"
#include "vfpass/base/deadline.hpp"
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

// Until libvirt answers: after the host has booted, it may start at the same time.
std::optional<DomainDescription> findStarted(Session& session, const Uuid& uuid,
                                             const Deadline& deadline) {
  for (;;) {
    StopSignals::throwIfAsked();
    try {
      return session.hypervisor().findDomain(toString(uuid));
    } catch (const Error& error) {
      if (deadline.over()) {
        throw;
      }
      session.verbose(error.what());
    }
    std::this_thread::sleep_for(std::chrono::seconds(1));
  }
}

// VMs with VFs of the same PF are verified one after the other, so that none lowers the figures of
// another. A guest that takes longer than deadlines::startedTurn does not delay the others further.
std::vector<state::FileLock> takeTurn(Session& session, const DomainDescription& domain) {
  std::set<std::string> pfs;
  for (const Lease& lease : runningVfs(session, domain)) {
    pfs.insert(toString(lease.pf));
  }
  const Deadline deadline(deadlines::startedTurn);
  std::vector<state::FileLock> turn;
  for (const std::string& pf : pfs) {  // in order, so that two never wait for each other
    const auto file = session.options().runDirectory / ("verify-" + pf + ".lock");
    auto lock = state::FileLock::tryAcquire(file);
    while (!lock && !deadline.over()) {
      StopSignals::throwIfAsked();
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
      lock = state::FileLock::tryAcquire(file);
    }
    if (lock) {
      turn.push_back(*std::move(lock));
    }
  }
  if (turn.size() < pfs.size()) {
    session.note("VM " + printable(domain.name) +
                 ": verified although another VM with VFs of the same PF is being verified; its "
                 "figures may be lower");
  }
  return turn;
}

void verifyFound(Session& session, const DomainDescription& domain, VerifyRequest request) {
  session.operations().begin(events::Operation::verify);
  session.operations().setDomain(domain.uuid, domain.name);
  const auto running = runningGuest(session, toString(domain.uuid), "verify");
  waitForAgent(session, session.hypervisor(), running, request.wait);
  request.wait = std::chrono::seconds(0);
  const auto turn = takeTurn(session, running);
  const auto report =
      verifyVm(session, runningGuest(session, toString(domain.uuid), "verify"), request);
  session.note("VM " + printable(domain.name) + ": " + std::string(toString(verdict(report))));
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

// In a process of its own, so that a guest that hangs concerns no other.
void verifyStartedVm(Session& session, const std::string& vm, const VerifyRequest& request) {
  const auto uuid = parseUuid(vm);
  if (!uuid) {
    throw Error("--pending: not the UUID of a VM: " + printable(vm),
                "run `vfpass verify --pending`, or `vfpass verify " + shellArgument(vm) + "`",
                ExitCode::badInput);
  }
  std::optional<DomainDescription> domain;
  try {
    domain = findStarted(session, *uuid, Deadline(request.wait));
    if (domain && isVerifiedOnStart(session, *domain)) {
      verifyFound(session, *domain, request);
    }
  } catch (const Error& error) {
    if (domain) {
      session.operations().end({events::Result::unverified, error.what(), error.remedy()});
      reportUnverified(session, *domain, error.what(), error.remedy());
    } else {
      session.warn(error.what());
    }
  }
}

// Run by systemd after starts, for VMs whose mapping has `on-start: report`. A VM that cannot be
// verified gets a report; the exit status is not used.
void verifyStarted(Session& session, const VerifyRequest& request) {
  const std::filesystem::path run = session.options().runDirectory;
  const auto lock = state::FileLock::tryAcquire(run / "verify-started.lock");
  if (!lock) {
    session.note("another vfpass is verifying the VMs that have started");
    return;
  }
  OwnProcesses processes(request.wait + deadlines::startedTurn +
                         request.timeout.value_or(deadlines::startedLongest));
  const StartedWork work{
      [&](const Uuid& uuid) { processes.start(uuid); },
      [&] {
        StopSignals::throwIfAsked();
        return processes.takeEnded(std::chrono::milliseconds(100));
      },
      [&](const Uuid& uuid, const std::string& reason) { giveUp(session, uuid, reason); }};
  verifyStartedVms(run, work);
}

}  // namespace vfpass::session
