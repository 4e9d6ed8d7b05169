#include "folder.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>

#include "failure.hpp"
#include "vfpass/base/file_descriptor.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/error.hpp"

namespace vfpass::state {
namespace {

std::string named(const std::string& what, const std::filesystem::path& path) {
  return what + " " + printable(path.string());
}

void createFolder(const std::filesystem::path& folder) {
  std::error_code error;
  if (folder.has_parent_path()) {
    std::filesystem::create_directories(folder.parent_path(), error);
    if (error) {
      throw systemFailure(named("cannot create the folder", folder.parent_path()), error.value(),
                          folder.parent_path());
    }
  }
  if (::mkdir(folder.c_str(), 0700) == 0) {
    syncFolder(folder.has_parent_path() ? folder.parent_path() : ".");
  } else if (errno != EEXIST) {
    throw systemFailure(named("cannot create the folder", folder), errno, folder.parent_path());
  }
}

void refuseSharedFolder(const std::filesystem::path& folder) {
  struct stat status = {};
  if (::stat(folder.c_str(), &status) != 0) {
    throw systemFailure(named("cannot look into", folder), errno, folder);
  }
  if (!S_ISDIR(status.st_mode)) {
    throw systemFailure(named("cannot use", folder), ENOTDIR, folder);
  }
  if ((status.st_mode & S_IWOTH) != 0) {
    throw Error(named("will not use the folder", folder) + ": everybody may write to it",
                "chmod o-w " + printable(folder.string()) + ", or name another folder",
                ExitCode::badInput);
  }
}

}  // namespace

std::filesystem::path makePrivateFolder(const std::filesystem::path& folder) {
  // A trailing slash would make the last component empty and its parent the folder itself.
  const auto target = folder.has_filename() ? folder : folder.parent_path();
  createFolder(target);
  refuseSharedFolder(target);
  std::error_code error;
  auto canonical = std::filesystem::canonical(target, error);
  if (error) {
    throw systemFailure(named("cannot look into", target), error.value(), target);
  }
  return canonical;
}

void makePrivateFile(const std::filesystem::path& file) {
  // O_EXCL: an existing file is not even opened, because closing any descriptor of a file drops all
  // POSIX locks that this process has on it, SQLite's included.
  const FileDescriptor created(
      ::open(file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (created) {
    syncFolder(file.parent_path());
  } else if (errno != EEXIST) {
    throw systemFailure(named("cannot create", file), errno, file.parent_path());
  }
}

void syncFolder(const std::filesystem::path& folder) {
  const FileDescriptor opened(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  // EINVAL: the file system knows no fsync of folders, and none is needed there.
  if (!opened || (::fsync(opened.get()) != 0 && errno != EINVAL)) {
    throw systemFailure(named("cannot write the folder", folder) + " to disk", errno, folder);
  }
}

}  // namespace vfpass::state
