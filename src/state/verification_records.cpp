#include "vfpass/state/verification_records.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "state_folder.hpp"
#include "vfpass/base/bounded_read.hpp"
#include "vfpass/base/scope_guard.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/error.hpp"

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

namespace fs = std::filesystem;

// A host has far fewer PFs.
constexpr std::size_t mostBaselines = 1024;

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

namespace {

fs::path marksIn(const fs::path& runDirectory) { return runDirectory / "started"; }

// `UUID`, and after N attempts `UUID.N`.
fs::path fileOf(const fs::path& runDirectory, const StartedMark& mark) {
  const std::string number = mark.attempts == 0 ? "" : "." + std::to_string(mark.attempts);
  return marksIn(runDirectory) / (toString(mark.domain) + number);
}

std::optional<StartedMark> parseMark(const std::string& name) {
  const auto dot = name.find('.');
  const auto domain = parseUuid(name.substr(0, dot));
  const auto attempts = dot == std::string::npos ? std::optional<std::uint64_t>(0)
                                                 : parseNumber(name.substr(dot + 1));
  constexpr std::uint64_t most = 1000;
  if (!domain || !attempts || *attempts > most ||
      name != toString(*domain) + (*attempts == 0 ? "" : "." + std::to_string(*attempts))) {
    return std::nullopt;
  }
  return StartedMark{*domain, static_cast<unsigned>(*attempts)};
}

}  // namespace

void markStarted(const fs::path& runDirectory, const Uuid& domain) {
  makePrivateFolder(runDirectory);
  const fs::path file = makePrivateFolder(marksIn(runDirectory)) / toString(domain);
  makePrivateFile(file);
  std::error_code ignored;  // of an earlier start: its age counts for removeMarks() only
  fs::last_write_time(file, fs::file_time_type::clock::now(), ignored);
}

std::vector<StartedMark> startedMarks(const fs::path& runDirectory) {
  std::map<Uuid, std::pair<StartedMark, fs::file_time_type>> newest;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(marksIn(runDirectory), ignored)) {
    const auto mark = parseMark(entry.path().filename().string());
    if (!mark) {
      continue;
    }
    const auto since = fs::last_write_time(entry.path(), ignored);
    const auto [known, added] = newest.try_emplace(mark->domain, *mark, since);
    if (!added && mark->attempts < known->second.first.attempts) {
      known->second = {*mark, since};
    }
  }
  std::vector<StartedMark> marks;
  for (const auto& [domain, entry] : newest) {
    marks.push_back(entry.first);
  }
  std::ranges::sort(marks, {}, [&](const StartedMark& mark) {
    return std::tuple(mark.attempts, newest.at(mark.domain).second, mark.domain);
  });
  return marks;
}

std::optional<StartedMark> beginAttempt(const fs::path& runDirectory, const StartedMark& mark) {
  const StartedMark begun{mark.domain, mark.attempts + 1};
  std::error_code failure;
  fs::rename(fileOf(runDirectory, mark), fileOf(runDirectory, begun), failure);
  if (failure == std::errc::no_such_file_or_directory) {
    return std::nullopt;
  }
  if (failure) {
    throw Error("cannot rename the mark " + printable(fileOf(runDirectory, mark).string()) + ": " +
                    failure.message(),
                "check the directory, then run `vfpass verify --pending`");
  }
  return begun;
}

void removeMark(const fs::path& runDirectory, const StartedMark& mark) {
  std::error_code ignored;
  fs::remove(fileOf(runDirectory, mark), ignored);
}

void removeMarks(const fs::path& runDirectory, const Uuid& domain, fs::file_time_type until) {
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(marksIn(runDirectory), ignored)) {
    const auto mark = parseMark(entry.path().filename().string());
    if (mark && mark->domain == domain && fs::last_write_time(entry.path(), ignored) <= until) {
      fs::remove(entry.path(), ignored);
    }
  }
}

void removeStrayMarks(const fs::path& runDirectory) {
  const auto marks = startedMarks(runDirectory);
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(marksIn(runDirectory), ignored)) {
    const auto mark = parseMark(entry.path().filename().string());
    if (!mark || std::ranges::find(marks, *mark) == marks.end()) {
      fs::remove(entry.path(), ignored);
    }
  }
}

void keepBaseline(const fs::path& stateDirectory, const PciAddress& pf, const std::string& text) {
  makePrivateFolder(stateDirectory);
  const fs::path folder = makePrivateFolder(stateDirectory / "baselines");
  const fs::path partial = folder / (toString(pf) + ".new");
  std::error_code ignored;
  fs::remove(partial, ignored);  // left by a process that was killed
  const ScopeGuard removePartial([&] { fs::remove(partial, ignored); });
  writePrivateFile(partial, text);
  const fs::path file = folder / (toString(pf) + ".json");
  if (std::rename(partial.c_str(), file.c_str()) != 0) {
    throw systemFailure("cannot save " + printable(file.string()), errno, folder);
  }
  syncFolder(folder);
}

std::vector<std::string> keptBaselines(const fs::path& stateDirectory) {
  std::vector<fs::path> files;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(stateDirectory / "baselines", ignored)) {
    if (files.size() < mostBaselines && entry.path().extension() == ".json") {
      files.push_back(entry.path());
    }
  }
  std::ranges::sort(files);
  std::vector<std::string> texts;
  for (const fs::path& file : files) {
    try {
      texts.push_back(readBoundedFile(file, largestBaseline));
    } catch (const ReadRefused&) {  // as without a baseline: another measurement replaces it
      continue;
    }
  }
  return texts;
}

}  // namespace vfpass::state
