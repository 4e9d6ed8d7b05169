#include "apply_policy.hpp"

#include <algorithm>

#include "host_policy.hpp"
#include "host_settings.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/error.hpp"
#include "vfpass/plan.hpp"

namespace vfpass::cli {
namespace {

constexpr std::chrono::milliseconds databasePatience{15000};

host::EswitchMode wantedMode(const PfPolicy& policy) {
  const auto mode = host::parseEswitchMode(*policy.eswitchMode);
  if (!mode) {
    throw Error(toString(policy.place) + ": embedded-switch-mode " +
                    printable(*policy.eswitchMode) + " is neither legacy nor switchdev",
                {}, ExitCode::badInput);
  }
  return *mode;
}

void requireNobodyHurt(const PhysicalFunction& pf, const std::vector<Lease>& leases,
                       const std::string& what) {
  const auto holders = vfHolders(pf, leases);
  if (!holders.empty()) {
    throw Error("PF " + toString(pf.address) + ": " + what + " would take VFs away that are in " +
                    "use: " + nameHolders(holders),
                "shut those VMs down and `vfpass detach` them, or take the netdevs down; then run "
                "`vfpass host apply` again",
                ExitCode::refused);
  }
}

}  // namespace

PolicyRun::PolicyRun(Session& session, const PfPolicy& policy, Mode mode)
    : session_(session), policy_(policy), mode_(mode) {}

void PolicyRun::run(const PciAddress& pf) {
  const PhysicalFunction before = session_.kernel().readPf(pf);
  requireFittingPolicy(before, policy_);
  leases_ = session_.readLeases();
  bringVfs(before);
  // Netdevs are made anew when the eswitch mode changes: name, index and MTU may be others now.
  bringLink(session_.kernel().readPf(pf));
}

void PolicyRun::bringVfs(const PhysicalFunction& pf) {
  const auto present = static_cast<unsigned>(pf.vfs.size());
  const unsigned count = policy_.vfCount.value_or(present);
  bool setsMode = false;
  if (policy_.eswitchMode) {
    const auto found = foundEswitchMode(session_, pf);
    setsMode = found != wantedMode(policy_);
    if (setsMode && !found) {
      setEswitchMode(pf);  // says why it cannot be seen, before any VF is touched
      setsMode = false;
    }
  }
  if (count != present || setsMode) {
    rebuildVfs(pf, count, setsMode);
  }
}

void PolicyRun::rebuildVfs(const PhysicalFunction& pf, unsigned count, bool setsMode) {
  const state::Database database(session_.options().stateDirectory, state::Database::Open::readOnly,
                                 databasePatience);
  requireNoOpenOperation(pf, database.openOperations());
  if (!pf.vfs.empty()) {
    requireNobodyHurt(pf, leases_,
                      setsMode ? "changing the eswitch mode" : "changing the number of VFs");
  }
  requireRoomForLeases(pf, count, leases_);
  // A count can only change through 0 (EBUSY otherwise), and drivers change the mode without VFs.
  removeVfs(pf);
  try {
    if (setsMode) {
      setEswitchMode(pf);
    }
    createVfs(pf, count, policy_.probeVfs);
  } catch (const Error& error) {
    throw Error(error.what() + putBack(pf), error.remedy(), error.code());
  }
}

std::string PolicyRun::putBack(const PhysicalFunction& pf) {
  const bool probed = std::any_of(pf.vfs.begin(), pf.vfs.end(),
                                  [](const VirtualFunction& vf) { return !vf.driver.empty(); });
  try {
    createVfs(pf, static_cast<unsigned>(pf.vfs.size()), probed);
    return pf.vfs.empty() ? "" : "; the PF has as many VFs as before";
  } catch (const Error& error) {
    return std::string("; the VFs it had could not be made again: ") + error.what();
  }
}

void PolicyRun::removeVfs(const PhysicalFunction& pf) {
  if (!pf.vfs.empty()) {
    const RemoveVfs action{pf.address};
    act(describe(action), [&] { session_.kernel().removeVfs(action); });
  }
}

void PolicyRun::createVfs(const PhysicalFunction& pf, unsigned count, bool probe) {
  if (count > 0) {
    const CreateVfs action{pf.address, count, probe};
    act(describe(action), [&] { session_.kernel().createVfs(action); });
  }
}

void PolicyRun::setEswitchMode(const PhysicalFunction& pf) {
  const host::EswitchMode mode = wantedMode(policy_);
  act("set the eswitch mode to " + std::string(toString(mode)),
      [&] { host::setEswitchMode(pf.address, mode, eswitchPatience); });
}

void PolicyRun::bringLink(const PhysicalFunction& pf) {
  if (!policy_.mtu && !policy_.up) {
    return;
  }
  const host::NetdevHandle netdev{pf.netdevIndex, pf.netdev};
  const auto found = foundLink(session_, pf);
  if (policy_.mtu && (!found || found->mtu != *policy_.mtu)) {
    act("set the MTU of " + pf.netdev + " to " + std::to_string(*policy_.mtu),
        [&] { host::setMtu(netdev, *policy_.mtu, linkPatience); });
  }
  if (policy_.up && (!found || found->up != *policy_.up)) {
    if (!*policy_.up) {
      requireNobodyHurt(pf, leases_, "taking the link of " + pf.netdev + " down");
    }
    act("bring " + pf.netdev + (*policy_.up ? " up" : " down"),
        [&] { host::setUp(netdev, *policy_.up, linkPatience); });
  }
}

void PolicyRun::act(const std::string& description, const std::function<void()>& work) {
  session_.verbose(description);
  if (mode_ == Mode::change) {
    work();
    session_.verbose("done: " + description);
  }
  actions_.push_back(description);
}

}  // namespace vfpass::cli
