#include "verification.hpp"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <fstream>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "guest_devices.hpp"
#include "verification_steps.hpp"
#include "vfpass/base/deadline.hpp"
#include "vfpass/base/own_process.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/error.hpp"
#include "vfpass/report/verify_report.hpp"
#include "vfpass/state/locks.hpp"
#include "vfpass/state/verification_records.hpp"

namespace vfpass::commands {
namespace {

/// Further processes of this program, with its own arguments and a VM. None outlives this object:
/// they get SIGTERM and, 10 s later, SIGKILL.
class OwnProcesses {
 public:
  /// None may run longer than `longest`.
  explicit OwnProcesses(std::chrono::seconds longest) : longest_(longest) {}
  OwnProcesses(const OwnProcesses&) = delete;
  OwnProcesses& operator=(const OwnProcesses&) = delete;
  ~OwnProcesses();

  /// Throws Error.
  void start(const Uuid& domain);
  /// One that has ended; `completed` if its exit status was 0. Waits for one up to `timeout`.
  std::optional<EndedVerification> takeEnded(std::chrono::milliseconds timeout);

 private:
  struct Process {
    Uuid domain;
    Deadline deadline;
  };

  std::optional<EndedVerification> reap();

  std::chrono::seconds longest_;
  std::map<pid_t, Process> running_;
};

// Enough to kill a probe in the guest and remove its directory.
constexpr std::chrono::seconds endsWithin{10};
// How long a VM that has started waits for its verification; each look reads a directory.
constexpr std::chrono::seconds newMarksEvery{1};
constexpr const char* thisProgram = "/proc/self/exe";

std::vector<std::string> ownArguments() {
  std::vector<std::string> arguments;
  std::ifstream line("/proc/self/cmdline", std::ios::binary);
  for (std::string word; std::getline(line, word, '\0');) {
    arguments.push_back(word);
  }
  return arguments;
}

OwnProcesses::~OwnProcesses() {
  for (const auto& [process, about] : running_) {
    ::kill(process, SIGTERM);
  }
  const Deadline deadline(endsWithin);
  while (!running_.empty()) {
    if (!takeEnded(deadline.left()) && deadline.over()) {
      for (const auto& [process, about] : running_) {
        ::kill(process, SIGKILL);
        ::waitpid(process, nullptr, 0);
      }
      running_.clear();
    }
  }
}

void OwnProcesses::start(const Uuid& domain) {
  std::vector<std::string> words = ownArguments();
  words.push_back(toString(domain));
  std::vector<char*> arguments;
  for (std::string& word : words) {
    arguments.push_back(word.data());
  }
  arguments.push_back(nullptr);
  const pid_t parent = ::getpid();
  const pid_t process = ::_Fork();
  if (process == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (::getppid() == parent) {
      ::execv(thisProgram, arguments.data());
    }
    ::_exit(1);
  }
  if (process < 0) {
    throw Error("cannot start a process: " + errnoText(errno));
  }
  running_.emplace(process, Process{domain, Deadline(longest_)});
}

std::optional<EndedVerification> OwnProcesses::takeEnded(std::chrono::milliseconds timeout) {
  std::vector<pid_t> processes;
  for (const auto& [process, about] : running_) {
    processes.push_back(process);
  }
  waitForExit(processes, Deadline(timeout));
  return reap();
}

// Also kills those that have run for too long.
std::optional<EndedVerification> OwnProcesses::reap() {
  for (const auto& [process, about] : running_) {
    int status = 0;
    const pid_t found = ::waitpid(process, &status, WNOHANG);
    if (found != 0) {  // an error means that this process ignores SIGCHLD
      const EndedVerification ended{about.domain,
                                    found < 0 || (WIFEXITED(status) && WEXITSTATUS(status) == 0)};
      running_.erase(process);
      return ended;
    }
    if (about.deadline.over()) {
      ::kill(process, SIGKILL);
    }
  }
  return std::nullopt;
}

class StartedQueue {
 public:
  StartedQueue(const std::filesystem::path& runDirectory, const StartedWork& work)
      : runDirectory_(runDirectory), work_(work) {}

  /// False when nothing is left.
  bool step() {
    state::removeStrayMarks(runDirectory_);
    for (const state::StartedMark& mark : state::startedMarks(runDirectory_)) {
      treat(mark);
    }
    if (running_.empty()) {
      return !state::startedMarks(runDirectory_).empty();
    }
    if (const auto ended = work_.wait()) {
      finish(*ended);
    }
    return true;
  }

 private:
  // A VM that starts again during its verification is verified again afterwards.
  void treat(const state::StartedMark& mark) {
    if (running_.contains(mark.domain)) {
      return;
    }
    if (mark.attempts >= mostAttempts) {
      work_.giveUp(mark.domain,
                   "its verification was interrupted " + std::to_string(mark.attempts) + " times");
      state::removeMark(runDirectory_, mark);
    } else if (running_.size() < mostStarted) {
      if (const auto begun = state::beginAttempt(runDirectory_, mark)) {
        work_.start(mark.domain);
        running_.emplace(mark.domain, *begun);
      }
    }
  }

  void finish(const EndedVerification& ended) {
    const auto found = running_.find(ended.domain);
    if (found != running_.end() && ended.completed) {
      state::removeMark(runDirectory_, found->second);
    }
    running_.erase(ended.domain);
  }

  const std::filesystem::path& runDirectory_;
  const StartedWork& work_;
  std::map<Uuid, state::StartedMark> running_;
};

}  // namespace

void verifyStartedVms(const std::filesystem::path& runDirectory, const StartedWork& work) {
  StartedQueue queue(runDirectory, work);
  while (queue.step()) {
  }
}

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
  report.time = utcNow();
  report.findings.push_back(seenByHost(
      {"on-start", "", Outcome::notObservable, "a verification after the start", reason, remedy}));
  report::boundTexts(report);
  try {
    keepReport(session, report);
  } catch (const Error& error) {
    session.warn(withRemedy(error));
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
      session.disconnect();
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
  request.afterStart = true;
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
    session.warn(withRemedy(error));
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
      session.warn(withRemedy(error));
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
        return processes.takeEnded(newMarksEvery);
      },
      [&](const Uuid& uuid, const std::string& reason) { giveUp(session, uuid, reason); }};
  verifyStartedVms(run, work);
}

}  // namespace vfpass::commands
