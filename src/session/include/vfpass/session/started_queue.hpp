#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <string>

#include "vfpass/identifiers.hpp"

namespace vfpass::session {

/// Verifications of one start that may begin: those before the last were interrupted.
inline constexpr unsigned mostAttempts = 3;

/// What verifyStartedVms() does with a VM.
struct StartedWork {
  /// Whether its verification can begin now: its agent answers, or nothing is worth waiting for.
  std::function<bool(const Uuid&)> isReady;
  /// Returns when the verification has ended, in whatever way. An exception means that it was
  /// interrupted.
  std::function<void(const Uuid&)> verify;
  /// Reports that the VM was not verified.
  std::function<void(const Uuid&, const std::string& reason)> giveUp;
  std::function<std::chrono::steady_clock::time_point()> now;
  std::function<void()> pause;  ///< between two rounds in which no VM was ready
};

/// Verifies all VMs with a mark, also those that start meanwhile, until none is left. All wait for
/// their agents at the same time, each for `wait` at most, so that mute guests do not delay the
/// others; then a VM is verified anyway. A mark stays until the verification has ended. A VM whose
/// verification was interrupted mostAttempts times is given up.
void verifyStartedVms(const std::filesystem::path& runDirectory, std::chrono::seconds wait,
                      const StartedWork& work);

}  // namespace vfpass::session
