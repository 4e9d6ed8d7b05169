#include "vfpass/state/started_marks.hpp"

#include "state_folder.hpp"

namespace vfpass::state {
namespace {

std::filesystem::path marksIn(const std::filesystem::path& runDirectory) {
  return runDirectory / "started";
}

}  // namespace

void markStarted(const std::filesystem::path& runDirectory, const Uuid& domain) {
  makePrivateFolder(runDirectory);
  makePrivateFile(makePrivateFolder(marksIn(runDirectory)) / toString(domain));
}

std::vector<Uuid> takeStarted(const std::filesystem::path& runDirectory) {
  std::vector<Uuid> domains;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(marksIn(runDirectory), ignored)) {
    const auto uuid = parseUuid(entry.path().filename().string());
    std::filesystem::remove(entry.path(), ignored);
    if (uuid) {
      domains.push_back(*uuid);
    }
  }
  return domains;
}

}  // namespace vfpass::state
