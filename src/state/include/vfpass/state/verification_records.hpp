#pragma once

#include <compare>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "vfpass/mac_guid_uuid.hpp"
#include "vfpass/pci_address.hpp"

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

/// Durably saves the baseline of this PF (JSON text) as `baselines/ADDRESS.json` in the state
/// directory, for root only. Replaces an earlier one. The caller holds the PF's lock
/// (locks.hpp): the draft has one name for each PF. Throws Error.
void keepBaseline(const std::filesystem::path& stateDirectory, const PciAddress& pf,
                  const std::string& text);

/// Larger files are not read.
inline constexpr std::size_t largestBaseline = std::size_t{1} << 20U;

/// The text of each baseline that can be read, in the order of the addresses.
std::vector<std::string> keptBaselines(const std::filesystem::path& stateDirectory);

}  // namespace vfpass::state
