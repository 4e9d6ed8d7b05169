#include "vfpass/state/report_history.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <utility>
#include <vector>

#include "state_folder.hpp"
#include "vfpass/base/bounded_read.hpp"
#include "vfpass/base/scope_guard.hpp"
#include "vfpass/base/text.hpp"

namespace vfpass::state {
namespace {

namespace fs = std::filesystem;

fs::path folderOf(const fs::path& stateDirectory, const Uuid& domain) {
  return stateDirectory / "reports" / toString(domain);
}

constexpr std::size_t numberDigits = 8;

// `00000012-2026-11-21T09:40:05Z.json`: 12. An earlier version wrote only the time: 0.
unsigned long numberOf(const fs::path& report) {
  const std::string name = report.filename();
  const std::string digits = name.substr(0, name.find('-'));
  return digits.size() == numberDigits ? parseNumber(digits).value_or(0) : 0;
}

std::string withDigits(unsigned long number) {
  const std::string text = std::to_string(number);
  return std::string(numberDigits - std::min(numberDigits, text.size()), '0') + text;
}

// Oldest first, by number: a clock can be set back.
std::vector<fs::path> reportsIn(const fs::path& folder) {
  std::vector<fs::path> reports;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    if (entry.path().extension() == ".json") {
      reports.push_back(entry.path());
    }
  }
  std::ranges::sort(reports, {}, [](const fs::path& report) {
    return std::pair(numberOf(report), report.filename().string());
  });
  return reports;
}

KeptReport read(const fs::path& file) {
  try {
    return {file, readBoundedFile(file, largestReport), ""};
  } catch (const ReadRefused& refused) {
    return {file, "", refused.what()};
  }
}

}  // namespace

void keepReport(const fs::path& stateDirectory, const Uuid& domain, const std::string& time,
                const std::string& text) {
  makePrivateFolder(stateDirectory);
  makePrivateFolder(stateDirectory / "reports");
  const fs::path folder = makePrivateFolder(folderOf(stateDirectory, domain));
  const auto earlier = reportsIn(folder);
  const unsigned long number = earlier.empty() ? 1 : numberOf(earlier.back()) + 1;
  const std::string name = withDigits(number) + "-" + time;
  const fs::path partial = folder / (name + ".new");
  std::error_code ignored;
  fs::remove(partial, ignored);  // left by a process that was killed
  const ScopeGuard removePartial([&] { fs::remove(partial, ignored); });
  writePrivateFile(partial, text);
  if (std::rename(partial.c_str(), (folder / (name + ".json")).c_str()) != 0) {
    throw systemFailure("cannot save " + printable(partial.string()), errno, folder);
  }
  syncFolder(folder);
  const auto reports = reportsIn(folder);
  for (std::size_t i = 0; i + reportsKept < reports.size(); ++i) {
    fs::remove(reports[i], ignored);
  }
}

std::vector<KeptReport> keptReports(const fs::path& stateDirectory, const Uuid& domain) {
  std::vector<KeptReport> reports;
  for (const fs::path& file : reportsIn(folderOf(stateDirectory, domain))) {
    reports.push_back(read(file));
  }
  std::ranges::reverse(reports);
  return reports;
}

std::optional<KeptReport> latestReport(const fs::path& stateDirectory, const Uuid& domain) {
  const auto reports = reportsIn(folderOf(stateDirectory, domain));
  return reports.empty() ? std::nullopt : std::optional(read(reports.back()));
}

}  // namespace vfpass::state
