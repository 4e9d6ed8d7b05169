#include "vfpass/state/started_marks.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <tuple>

#include "state_folder.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/error.hpp"

namespace vfpass::state {
namespace {

namespace fs = std::filesystem;

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

}  // namespace vfpass::state
