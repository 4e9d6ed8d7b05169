#pragma once

#include <compare>
#include <filesystem>
#include <optional>
#include <vector>

#include "vfpass/mac_guid_uuid.hpp"

namespace vfpass::state {

/// A domain that has started and waits for its verification.
struct StartedMark {
  Uuid domain;
  unsigned attempts = 0;  ///< verifications begun; all but the current one were interrupted

  auto operator<=>(const StartedMark&) const = default;
};

/// Marks this domain as just started: creates an empty file below `started/` in the run directory,
/// which a systemd path unit watches. The hook does nothing else, because libvirt waits for it.
/// Throws Error.
void markStarted(const std::filesystem::path& runDirectory, const Uuid& domain);

/// The marked domains: those with fewer attempts first, among equals the oldest mark. A domain that
/// started again during its verification has a new mark, which is the one returned.
std::vector<StartedMark> startedMarks(const std::filesystem::path& runDirectory);

/// Counts the attempt in the mark's file name, atomically, before the verification begins: a crash
/// leaves a mark that the next run finds. Returns the mark with the new number; nullopt if the mark
/// was removed meanwhile, because the VM has been verified or has stopped. Throws Error.
std::optional<StartedMark> beginAttempt(const std::filesystem::path& runDirectory,
                                        const StartedMark& mark);

/// Removes the mark. One that the hook has made meanwhile stays.
void removeMark(const std::filesystem::path& runDirectory, const StartedMark& mark);

/// Removes the marks of this domain, which has stopped, or has been verified since `until`: marks
/// of a later start stay.
void removeMarks(const std::filesystem::path& runDirectory, const Uuid& domain,
                 std::filesystem::file_time_type until = std::filesystem::file_time_type::max());

/// Removes everything else from `started/`: the path unit starts its service until it is empty.
void removeStrayMarks(const std::filesystem::path& runDirectory);

}  // namespace vfpass::state
