#include "vfpass/state/memory_checks.hpp"

#include "state_folder.hpp"

namespace vfpass::state {
namespace {

std::filesystem::path memoryMarkIn(const std::filesystem::path& runDirectory) {
  return runDirectory / "gpu-memory-check";
}

}  // namespace

MemoryChecks memoryChecks(const std::filesystem::path& runDirectory) {
  return observedMemoryChecks(runDirectory).value_or(MemoryChecks::off);
}

std::optional<MemoryChecks> observedMemoryChecks(const std::filesystem::path& runDirectory) {
  std::error_code error;
  const auto found = std::filesystem::symlink_status(memoryMarkIn(runDirectory), error);
  if (!std::filesystem::status_known(found)) {
    return std::nullopt;
  }
  return std::filesystem::is_regular_file(found) ? MemoryChecks::on : MemoryChecks::off;
}

void setMemoryChecks(const std::filesystem::path& runDirectory, MemoryChecks checks) {
  const auto folder = makePrivateFolder(runDirectory);
  const auto mark = memoryMarkIn(folder);
  if (checks == MemoryChecks::on) {
    makePrivateFile(mark);
    requireTrustedFile(mark);
    return;
  }
  std::error_code error;
  std::filesystem::remove(mark, error);
  if (error) {
    throw systemFailure("cannot remove " + mark.string(), error.value(), folder);
  }
}

}  // namespace vfpass::state
