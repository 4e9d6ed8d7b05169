#include <unistd.h>

#include <optional>
#include <ostream>
#include <string>

#include "commands.hpp"
#include "guest_devices.hpp"
#include "host_observer.hpp"
#include "rdma_counters.hpp"
#include "verification.hpp"
#include "vfpass/base/bounded_read.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/remote/observe_protocol.hpp"

namespace vfpass::commands {
namespace {

/// This host's view of one VM, for a vfpass on another host. Changes nothing.
class ServedVm {
 public:
  explicit ServedVm(Session& session) : session_(session) {}

  remote::Observation describe(const Uuid& uuid) {
    const auto domain = runningGuest(session_, toString(uuid), "verify");
    leases_ = runningVfs(session_, domain);
    observer_.emplace(session_, domain, wantedInGuest(session_, domain));
    rdma_ = rdmaReader(session_, leases_);
    return {session_.kernel().bootId(), nvlinkOf(session_, domain), observer_->gpus(),
            observer_->placement()};
  }
  [[nodiscard]] verify::HostSide host(const std::string& entry) const {
    const Lease& lease = leaseOf(entry);  // throws before the first describe()
    return observer_->of(lease);
  }
  [[nodiscard]] std::optional<VfTraffic> traffic(const std::string& entry) const {
    return trafficOf(session_, leaseOf(entry));
  }
  [[nodiscard]] std::optional<VfTraffic> rdma(const std::string& entry) const {
    return rdma_(leaseOf(entry));
  }

 private:
  [[nodiscard]] const Lease& leaseOf(const std::string& entry) const {
    const auto found = std::ranges::find(leases_, entry, &Lease::entry);
    if (found == leases_.end()) {
      throw Error("no lease " + printable(entry) + " in use by this VM",
                  "run `vfpass status` on that host", ExitCode::unverified);
    }
    return *found;
  }

  Session& session_;
  std::vector<Lease> leases_;
  std::optional<commands::HostObserver> observer_;
  verify::ReadTraffic rdma_;  ///< set by describe(), as leases_
};

std::optional<std::string> nextRequest(BoundedLines& requests) {
  try {
    return requests.next();
  } catch (const ReadRefused& refused) {
    throw Error(std::string("standard input: cannot read a request: ") + refused.what(),
                "let `vfpass verify --peer` of another host start this command",
                ExitCode::badInput);
  }
}

ExitCode observe(Session& session) {
  // Whoever has the restricted key can write anything (docs/security.md).
  BoundedLines requests(STDIN_FILENO, remote::longestRequest);
  auto request = nextRequest(requests);
  session.requireLocalLibvirt("observe");
  ServedVm vm(session);
  const remote::ServedHost served{[&](const Uuid& domain) { return vm.describe(domain); },
                                  [&](const std::string& entry) { return vm.host(entry); },
                                  [&](const std::string& entry) { return vm.traffic(entry); },
                                  [&](const std::string& entry) { return vm.rdma(entry); }};
  for (; request; request = nextRequest(requests)) {
    session.out() << remote::replyTo(*request, served) << std::endl;
  }
  return ExitCode::done;
}

}  // namespace

void addObserve(CLI::App& app, Runner& runner) {
  auto* command = app.add_subcommand(
      "observe",
      "Answer the `vfpass verify --peer` of another host over standard input; changes nothing");
  command->callback([&runner] { runner = observe; });
}

}  // namespace vfpass::commands
