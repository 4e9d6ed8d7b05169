#pragma once

#include <SQLiteCpp/Database.h>

#include <cstdint>
#include <optional>
#include <string>

#include "vfpass/identifiers.hpp"

namespace vfpass::state {

// Each function runs inside its caller's transaction.

/// Remembers that this entry's lease of that generation, and every older one, has ended.
void writeTombstone(SQLite::Database& database, const Uuid& domain, const std::string& vfName,
                    std::int64_t generation);

/// The highest generation of this entry that has ended; nullopt when none has.
std::optional<std::uint64_t> readTombstone(SQLite::Database& database, const Uuid& domain,
                                           const std::string& vfName);

}  // namespace vfpass::state
