#include "vfpass/state/report_history.hpp"

#include <algorithm>
#include <fstream>
#include <vector>

#include "state_folder.hpp"
#include "vfpass/base/bounded_read.hpp"
#include "vfpass/error.hpp"

namespace vfpass::state {
namespace {

namespace fs = std::filesystem;

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
