#include "vfpass/state/report_history.hpp"

#include <algorithm>
#include <fstream>
#include <sstream>
#include <vector>

#include "state_folder.hpp"
#include "vfpass/error.hpp"

namespace vfpass::state {
namespace {

namespace fs = std::filesystem;

constexpr std::uintmax_t maxReportSize = std::uintmax_t{1} << 20U;

fs::path folderOf(const fs::path& stateDirectory, const Uuid& domain) {
  return stateDirectory / "reports" / toString(domain);
}

// Oldest first: the file names are timestamps.
std::vector<fs::path> reportsIn(const fs::path& folder) {
  std::vector<fs::path> reports;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    if (entry.path().extension() == ".json") {
      reports.push_back(entry.path());
    }
  }
  std::ranges::sort(reports);
  return reports;
}

}  // namespace

void keepReport(const fs::path& stateDirectory, const Uuid& domain, const std::string& time,
                const std::string& text) {
  makePrivateFolder(stateDirectory);
  makePrivateFolder(stateDirectory / "reports");
  const fs::path folder = makePrivateFolder(folderOf(stateDirectory, domain));
  const fs::path file = folder / (time + ".json");
  const fs::path partial = folder / (time + ".new");
  std::ofstream stream(partial, std::ios::binary | std::ios::trunc);
  stream << text << std::flush;
  std::error_code failure;
  if (stream) {
    fs::rename(partial, file, failure);
  }
  if (!stream || failure) {
    std::error_code ignored;
    fs::remove(partial, ignored);
    throw Error("cannot save the report in " + folder.string(),
                "make sure that the file system has free space");
  }
  const auto reports = reportsIn(folder);
  for (std::size_t i = 0; i + reportsKept < reports.size(); ++i) {
    std::error_code ignored;
    fs::remove(reports[i], ignored);
  }
}

std::optional<std::string> latestReport(const fs::path& stateDirectory, const Uuid& domain) {
  const auto reports = reportsIn(folderOf(stateDirectory, domain));
  std::error_code failure;
  if (reports.empty() || fs::file_size(reports.back(), failure) > maxReportSize || failure) {
    return std::nullopt;
  }
  std::ifstream stream(reports.back(), std::ios::binary);
  std::ostringstream text;
  text << stream.rdbuf();
  return stream ? std::optional(text.str()) : std::nullopt;
}

}  // namespace vfpass::state
