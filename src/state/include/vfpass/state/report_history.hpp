#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "vfpass/identifiers.hpp"

namespace vfpass::state {

/// Number of reports kept per VM.
inline constexpr std::size_t reportsKept = 10;

/// Saves a report (JSON text) as `reports/UUID/TIME.json` in the state directory, for root only,
/// and deletes the oldest beyond reportsKept. Throws Error.
void keepReport(const std::filesystem::path& stateDirectory, const Uuid& domain,
                const std::string& time, const std::string& text);

/// Text of the newest report; nullopt if there is none or it is unreadable.
std::optional<std::string> latestReport(const std::filesystem::path& stateDirectory,
                                        const Uuid& domain);

}  // namespace vfpass::state
