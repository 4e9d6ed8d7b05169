#pragma once

#include <SQLiteCpp/Database.h>

#include <cstdint>
#include <optional>
#include <string>

#include "vfpass/identifiers.hpp"

namespace vfpass::state {

// Each function runs inside its caller's transaction.

/// Records that this and all older generations of the entry have ended.
void writeTombstone(SQLite::Database& database, const Uuid& domain, const std::string& entry,
                    std::int64_t generation);

/// The highest ended generation of this entry; nullopt if none has ended.
std::optional<std::uint64_t> readTombstone(SQLite::Database& database, const Uuid& domain,
                                           const std::string& entry);

}  // namespace vfpass::state
