#include "vfpass/state/retention.hpp"

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "vfpass/base/text.hpp"
#include "vfpass/error.hpp"
#include "vfpass/state/locks.hpp"

namespace vfpass::state {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path> entriesOf(const fs::path& folder) {
  std::vector<fs::path> entries;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    entries.push_back(entry.path());
  }
  return entries;
}

void forgetReports(const Retention& retention) {
  const auto oldest = fs::file_time_type::clock::now() - reportsKeptFor;
  for (const fs::path& folder : entriesOf(retention.stateDirectory / "reports")) {
    const auto domain = parseUuid(folder.filename().string());
    std::error_code failed;
    // The folder changes with each report in it.
    const auto changed = fs::last_write_time(folder, failed);
    if (domain && !retention.domains.contains(*domain) && !failed && changed < oldest) {
      fs::remove_all(folder, failed);
    }
  }
}

// The middle of `domain-MIDDLE.lock`.
std::optional<std::string> middleOf(const fs::path& file, std::string_view prefix) {
  constexpr std::string_view suffix = ".lock";
  const std::string name = file.filename().string();
  if (!name.starts_with(prefix) || !name.ends_with(suffix)) {
    return std::nullopt;
  }
  return name.substr(prefix.size(), name.size() - prefix.size() - suffix.size());
}

// Only under the lock: whoever waits for it starts over with a new file.
void removeUnlessHeld(const fs::path& file, const std::function<bool()>& isNeeded) {
  try {
    const auto lock = FileLock::tryAcquire(file);
    if (lock && !isNeeded()) {
      std::error_code failed;
      fs::remove(file, failed);
    }
  } catch (const Error&) {  // no regular file of ours
  }
}

void forgetLockFiles(const Retention& retention, const Database& database) {
  for (const fs::path& file : entriesOf(retention.runDirectory)) {
    const auto domain = parseUuid(middleOf(file, "domain-").value_or(""));
    const auto operation = parseNumber(middleOf(file, "operation-").value_or(""));
    if (domain && !retention.domains.contains(*domain)) {
      removeUnlessHeld(file, [] { return false; });
    } else if (operation) {
      const auto number = static_cast<std::int64_t>(*operation);
      removeUnlessHeld(file, [&] { return database.openOperation(number).has_value(); });
    }
  }
}

}  // namespace

void forgetOldRecords(const Retention& retention, Database& database) {
  database.forgetEnded(retention.domains, endedLeasesKept);
  forgetReports(retention);
  forgetLockFiles(retention, database);
}

}  // namespace vfpass::state
