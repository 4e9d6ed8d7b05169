#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "vfpass/mac_guid_uuid.hpp"

namespace vfpass::state {

/// Number of reports kept per VM.
inline constexpr std::size_t reportsKept = 10;

/// Durably saves a report (JSON text) as `reports/UUID/NUMBER-TIME.json` in the state directory,
/// for root only, and deletes the oldest, by number, beyond reportsKept. Throws Error.
void keepReport(const std::filesystem::path& stateDirectory, const Uuid& domain,
                const std::string& time, const std::string& text);

/// Larger reports are not read. A report of verify is far smaller (report::boundTexts).
inline constexpr std::size_t largestReport = std::size_t{8} << 20U;

/// A kept report, or the reason why it cannot be read.
struct KeptReport {
  std::filesystem::path file;
  std::string text;
  std::string problem;  ///< empty: `text` is complete
};

/// All kept reports, newest first.
std::vector<KeptReport> keptReports(const std::filesystem::path& stateDirectory,
                                    const Uuid& domain);

/// The newest report; nullopt if there is none.
std::optional<KeptReport> latestReport(const std::filesystem::path& stateDirectory,
                                       const Uuid& domain);

}  // namespace vfpass::state
