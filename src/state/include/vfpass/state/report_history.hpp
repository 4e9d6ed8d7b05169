#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "vfpass/identifiers.hpp"

namespace vfpass::state {

/// How many reports of one VM are kept.
inline constexpr std::size_t reportsKept = 10;

/// Keeps a report (JSON text) as `reports/UUID/TIME.json` in the state folder, for root only, and
/// drops the oldest beyond reportsKept. Throws Error.
void keepReport(const std::filesystem::path& stateDirectory, const Uuid& domain,
                const std::string& time, const std::string& text);

/// The newest one's text; nullopt when there is none or it cannot be read.
std::optional<std::string> latestReport(const std::filesystem::path& stateDirectory,
                                        const Uuid& domain);

}  // namespace vfpass::state
