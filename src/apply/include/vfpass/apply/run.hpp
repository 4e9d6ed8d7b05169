#pragma once

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "vfpass/base/default_deadlines.hpp"
#include "vfpass/domain/domain_xml.hpp"
#include "vfpass/domain_facts.hpp"
#include "vfpass/hypervisor.hpp"
#include "vfpass/kernel.hpp"
#include "vfpass/seal_key.hpp"
#include "vfpass/state/database.hpp"
#include "vfpass/state/locks.hpp"

namespace vfpass::apply {

/// Everything needed to run a plan. References must outlive the call.
struct Tools {
  Kernel& kernel;
  state::Database& database;
  Hypervisor* hypervisor = nullptr;  ///< null in the hook, which runs no steps on domains
  const domain::Templates& templates;
  const SealKey& sealKey;  ///< for metadata; empty in the hook, which writes none
  std::filesystem::path runDirectory;
  std::chrono::milliseconds lockTimeout = deadlines::lock;
  /// When waiting and working must both be over: the deadline of the hook.
  std::optional<std::chrono::steady_clock::time_point> deadline = std::nullopt;
  std::chrono::milliseconds guestTimeout = deadlines::guestRelease;
  std::chrono::milliseconds holderTimeout = deadlines::holder;
  std::function<void(const Action&)> onAction = [](const Action&) {};
  /// Throws Cancelled if a signal has asked to stop. Called where the work can be rolled back.
  std::function<void()> checkpoint = [] {};
  /// Reads all domains and network pools of libvirt; called without locks of PFs. Empty in the
  /// hook, which has no libvirt: then only a plan's own steps remove VFs.
  std::function<Definitions()> readDefinitions = {};
  /// Creates the key that `sealKey` refers to. Called if it is empty and leases are to be sealed.
  std::function<void()> makeSealKey = [] {};

  /// The time left to wait for a lock, never beyond the deadline.
  [[nodiscard]] std::chrono::milliseconds remainingTimeout() const {
    using std::chrono::milliseconds;
    if (!deadline) {
      return lockTimeout;
    }
    const auto left =
        std::chrono::duration_cast<milliseconds>(*deadline - std::chrono::steady_clock::now());
    return std::clamp(left, milliseconds{0}, lockTimeout);
  }
};

/// Runs a plan that was made while `locks` (those of lockedPfs(plan)) were held. Each step is
/// journaled before it runs. The locks are released around steps on domains; after they are taken
/// again, the leases must still be those of the plan.
///
/// If a step of attach or prepare fails, all steps before it are rolled back and the Error of the
/// step is thrown. Detach and release do not roll back: the remaining steps stay in the journal for
/// recover(), and the Error says so. If Tools::checkpoint() throws, the steps are rolled back, too,
/// and the Cancelled says so. Returns warnings for the user.
std::vector<std::string> run(const Plan& plan, Tools& tools, std::vector<state::FileLock> locks);

}  // namespace vfpass::apply
