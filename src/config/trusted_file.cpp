#include "readers.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>

#include "vfpass/base/bounded_read.hpp"
#include "vfpass/base/file_descriptor.hpp"
#include "vfpass/base/ownership.hpp"
#include "vfpass/base/text.hpp"

namespace vfpass::config {
namespace {

constexpr std::size_t largestFile = 1U << 20U;

void report(ProblemList& problems, const std::string& message, const std::string& hint) {
  problems.add({}, message, hint);
}

bool checkOwnership(const struct stat& status, const std::string& path, ProblemList& problems) {
  const auto distrust = distrustOf(status, path);
  if (distrust) {
    report(problems, distrust->reason, distrust->remedy);
  }
  return !distrust;
}

void reportOpenError(int error, ProblemList& problems) {
  if (error == ELOOP) {  // O_NOFOLLOW and a symbolic link
    report(problems, "expected a regular file, found a symbolic link",
           "replace the link with a copy of the file");
  } else {
    report(problems, "cannot open the file: " + errnoText(error),
           error == ENOENT ? "check the path" : "check its permissions");
  }
}

std::optional<std::string> readAll(int descriptor, ProblemList& problems) {
  try {
    return readBounded(descriptor, largestFile);
  } catch (const ReadRefused& refused) {
    if (refused.error() == EFBIG) {
      report(problems, "expected at most 1 MiB, found more",
             "write one file for each virtual machine");
    } else {
      report(problems, std::string("cannot read the file: ") + refused.what(), {});
    }
    return std::nullopt;
  }
}

}  // namespace

std::optional<std::string> readTrustedFile(const std::filesystem::path& file,
                                           ProblemList& problems) {
  // Without O_NONBLOCK a FIFO would block here until a process opens it for writing.
  const FileDescriptor descriptor(
      ::open(file.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | O_NOCTTY));
  if (!descriptor) {
    reportOpenError(errno, problems);
    return std::nullopt;
  }
  struct stat status {};
  if (::fstat(descriptor.get(), &status) != 0) {
    report(problems, "cannot read the file's owner: " + errnoText(errno), {});
    return std::nullopt;
  }
  if (!S_ISREG(status.st_mode)) {
    report(problems, "expected a regular file, found something else", "remove it");
    return std::nullopt;
  }
  if (!checkOwnership(status, file.string(), problems)) {
    return std::nullopt;
  }
  return readAll(descriptor.get(), problems);
}

bool checkTrustedFolder(const std::filesystem::path& folder, ProblemList& problems) {
  struct stat status {};
  if (::stat(folder.c_str(), &status) != 0) {
    report(problems, "cannot read the directory: " + errnoText(errno), "check its permissions");
    return false;
  }
  if (!S_ISDIR(status.st_mode)) {
    report(problems, "expected a directory, found a file", "remove it");
    return false;
  }
  return checkOwnership(status, folder.string(), problems);
}

}  // namespace vfpass::config
