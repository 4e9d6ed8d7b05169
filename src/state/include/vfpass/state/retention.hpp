#pragma once

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <set>

#include "vfpass/mac_guid_uuid.hpp"
#include "vfpass/state/database.hpp"

namespace vfpass::state {

/// Ended leases that are remembered of domains that no longer exist. An administrator can define
/// such a domain again from an old XML, whose leases must not be rebuilt then.
inline constexpr std::size_t endedLeasesKept = 10000;

/// How long reports of a domain that no longer exists are kept after the last one.
inline constexpr std::chrono::days reportsKeptFor{90};

/// What is only kept for domains that exist.
struct Retention {
  std::filesystem::path stateDirectory;
  std::filesystem::path runDirectory;
  std::set<Uuid> domains;  ///< those that exist or have leases
};

/// Deletes ended leases, reports and lock files of domains that no longer exist, and lock files of
/// operations that have ended. Files that cannot be deleted stay. Throws Error like Database.
void forgetOldRecords(const Retention& retention, Database& database);

}  // namespace vfpass::state
