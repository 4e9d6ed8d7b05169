#include "state_folder.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "vfpass/base/bounded_read.hpp"
#include "vfpass/base/file_descriptor.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/error.hpp"

namespace vfpass::state {
namespace {

// EFBIG comes from the process's file size limit (ulimit -f), which stops a write like a full disk.
bool meansNoRoom(int error) { return error == ENOSPC || error == EDQUOT || error == EFBIG; }
bool meansNoPermission(int error) { return error == EACCES || error == EPERM; }

std::string remedyFor(int error, const std::filesystem::path& folder) {
  const std::string name = printable(folder.string());
  const std::string quoted = shellArgument(folder.string());
  if (meansNoRoom(error)) {
    return "make room in the file system of " + name + " (df -h " + quoted + "; df -i " + quoted +
           "), then run the command again; it first recovers interrupted operations";
  }
  if (error == EROFS) {
    return "make the file system of " + name +
           " writable (mount -o remount,rw), or specify another directory with --state-dir";
  }
  if (meansNoPermission(error)) {
    return "run as root, or specify a directory of your own with --state-dir";
  }
  return "check " + name + " and the kernel log (`dmesg`)";
}

std::string named(const std::string& what, const std::filesystem::path& path) {
  return what + " " + printable(path.string());
}

void createFolder(const std::filesystem::path& folder) {
  std::error_code error;
  if (folder.has_parent_path()) {
    std::filesystem::create_directories(folder.parent_path(), error);
    if (error) {
      throw systemFailure(named("cannot create directory", folder.parent_path()), error.value(),
                          folder.parent_path());
    }
  }
  if (::mkdir(folder.c_str(), 0700) == 0) {
    syncFolder(folder.has_parent_path() ? folder.parent_path() : ".");
  } else if (errno != EEXIST) {
    throw systemFailure(named("cannot create directory", folder), errno, folder.parent_path());
  }
}

[[noreturn]] void refuse(const std::filesystem::path& path, const std::string& reason,
                         const std::string& remedy) {
  throw Error(named("cannot trust", path) + ": " + reason, remedy, ExitCode::badInput);
}

}  // namespace

void requireTrusted(const std::filesystem::path& path, const struct stat& status) {
  if (const auto distrust = distrustOf(status, path.string())) {
    refuse(path, distrust->reason, distrust->remedy);
  }
}

void requireTrustedFolder(const std::filesystem::path& folder) {
  struct stat status = {};
  if (::lstat(folder.c_str(), &status) != 0) {
    throw systemFailure(named("cannot stat", folder), errno, folder);
  }
  if (S_ISLNK(status.st_mode)) {
    refuse(folder, "expected a directory, found a symbolic link",
           "specify the target of the link, or replace the link with a directory");
  }
  if (!S_ISDIR(status.st_mode)) {
    throw systemFailure(named("cannot use", folder), ENOTDIR, folder);
  }
  requireTrusted(folder, status);
}

void requireTrustedFile(const std::filesystem::path& file) {
  struct stat status = {};
  if (::lstat(file.c_str(), &status) != 0) {
    if (errno == ENOENT || errno == ENOTDIR) {
      return;
    }
    throw systemFailure(named("cannot stat", file), errno, file.parent_path());
  }
  if (!S_ISREG(status.st_mode)) {
    refuse(file,
           std::string("expected a regular file, found ") +
               (S_ISLNK(status.st_mode) ? "a symbolic link" : "something else"),
           "find out who created it, then remove it");
  }
  requireTrusted(file, status);
}

std::filesystem::path makePrivateFolder(const std::filesystem::path& folder) {
  // A trailing slash would make the last component empty and the directory its own parent.
  const auto target = folder.has_filename() ? folder : folder.parent_path();
  createFolder(target);
  requireTrustedFolder(target);
  std::error_code error;
  auto canonical = std::filesystem::canonical(target, error);
  if (error) {
    throw systemFailure(named("cannot stat", target), error.value(), target);
  }
  return canonical;
}

void makePrivateFile(const std::filesystem::path& file) {
  // O_EXCL: never opens an existing file, because closing any descriptor of a file drops all POSIX
  // locks that this process holds on it, including those of SQLite.
  const FileDescriptor created(
      ::open(file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (created) {
    syncFolder(file.parent_path());
  } else if (errno != EEXIST) {
    throw systemFailure(named("cannot create", file), errno, file.parent_path());
  }
}

void writePrivateFile(const std::filesystem::path& file, const std::string& text) {
  const FileDescriptor created(::open(
      file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, S_IRUSR | S_IWUSR));
  std::size_t written = 0;
  for (ssize_t count = 0; created && written < text.size() && count >= 0;
       written += static_cast<std::size_t>(std::max<ssize_t>(count, 0))) {
    count = ::write(created.get(), text.data() + written, text.size() - written);
  }
  if (!created || written < text.size() || ::fsync(created.get()) != 0) {
    throw systemFailure(named("cannot write", file), errno, file.parent_path());
  }
}

void makeExistingFilePrivate(const std::filesystem::path& file) {
  struct stat status = {};
  if (::lstat(file.c_str(), &status) != 0 || (status.st_mode & (S_IRWXG | S_IRWXO)) == 0) {
    return;
  }
  // Not fchmod(2): closing a descriptor of a database drops the locks of SQLite. Nobody else can
  // replace the file by a link, because the directory is trusted.
  if (::chmod(file.c_str(), S_IRUSR | S_IWUSR) != 0) {
    throw systemFailure(named("cannot change the mode of", file), errno, file.parent_path());
  }
}

void syncFolder(const std::filesystem::path& folder) {
  const FileDescriptor opened(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  // EINVAL: the file system does not support fsync on directories, and does not need it.
  if (!opened || (::fsync(opened.get()) != 0 && errno != EINVAL)) {
    throw systemFailure(named("cannot sync directory", folder), errno, folder);
  }
}

bool hasKnownRemedy(int error) {
  return meansNoRoom(error) || meansNoPermission(error) || error == EROFS;
}

Error systemFailure(const std::string& what, int error, const std::filesystem::path& folder) {
  return Error(what + ": " + errnoText(error), remedyFor(error, folder));
}

}  // namespace vfpass::state
