#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "vfpass/mac_guid_uuid.hpp"

namespace vfpass::commands {

/// Verifications of one start that may begin: those before the last were interrupted.
inline constexpr unsigned mostAttempts = 3;

/// Verifications at the same time. A guest that hangs occupies one of libvirtd's 20 workers
/// (max_workers in libvirtd.conf) while its agent is asked.
inline constexpr std::size_t mostStarted = 16;

/// A verification that is over.
struct EndedVerification {
  Uuid domain;
  bool completed = false;  ///< false: it was interrupted
};

/// What verifyStartedVms() does with a VM.
struct StartedWork {
  /// Starts its verification, which ends by itself.
  std::function<void(const Uuid&)> start;
  /// Waits briefly until one ends; nullopt: none has. May throw Cancelled.
  std::function<std::optional<EndedVerification>()> wait;
  /// Reports that the VM was not verified.
  std::function<void(const Uuid&, const std::string& reason)> giveUp;
};

/// Verifies all VMs with a mark, also those that start meanwhile, until none is left: at the same
/// time, so that no guest delays the others. A mark stays until the verification has ended. A VM
/// whose verification was interrupted mostAttempts times is given up.
void verifyStartedVms(const std::filesystem::path& runDirectory, const StartedWork& work);

}  // namespace vfpass::commands
