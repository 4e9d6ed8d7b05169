// Replaces the functions of libc that change files, for this program and all libraries in it: the
// world can kill the process, or let the call fail, before each change. Compiled without
// _FORTIFY_SOURCE, whose inline functions have the same names.
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "worker/world_socket.hpp"

namespace {

using vfpass::crash::announce;
using vfpass::crash::worldSocket;

std::array<std::string, 1024> names;  // of open files, by descriptor

std::string nameOf(int descriptor) {
  const auto at = static_cast<std::size_t>(descriptor);
  return descriptor >= 0 && at < names.size() ? names[at] : "?";
}

// Regular files and directories; pipes and the standard streams change nothing that lasts.
bool isWatched(int descriptor) {
  struct stat status = {};
  return worldSocket >= 0 && descriptor > STDERR_FILENO && descriptor != worldSocket &&
         ::fstat(descriptor, &status) == 0 && (S_ISREG(status.st_mode) || S_ISDIR(status.st_mode));
}

bool exists(int base, const char* path) {
  struct stat status = {};
  return ::fstatat(base, path, &status, AT_SYMLINK_NOFOLLOW) == 0;
}

bool mustFail(const vfpass::crash::Message& change) {
  const int error = announce(change);
  if (error != 0) {
    errno = error;
  }
  return error != 0;
}

bool mustFail(const char* call, int descriptor) {
  return isWatched(descriptor) && mustFail({call, nameOf(descriptor)});
}

bool mustFailToWrite(const char* call, int descriptor, off64_t offset, std::size_t length) {
  return isWatched(descriptor) &&
         mustFail({call, nameOf(descriptor), std::to_string(offset), std::to_string(length)});
}

std::string absolute(int base, const char* path) {
  return base == AT_FDCWD || *path == '/' ? path : nameOf(base) + '/' + path;
}

// The world cannot be asked here: a helper process opens files while others ask.
bool hasDescriptor() {
  if (worldSocket < 0) {
    return true;
  }
  auto& state = vfpass::crash::sharedState();
  const long number = ++state.opens;
  return state.failingOpen < 0 || number < state.failingOpen;
}

int openFile(int base, const char* path, int flags, mode_t mode) {
  if (!hasDescriptor()) {
    errno = EMFILE;
    return -1;
  }
  const std::string name = worldSocket >= 0 ? absolute(base, path) : "";
  if (worldSocket >= 0 && (flags & O_CREAT) != 0 && !exists(base, path) &&
      mustFail({"create", name})) {
    return -1;
  }
  const auto descriptor = static_cast<int>(::syscall(SYS_openat, base, path, flags, mode));
  if (worldSocket >= 0 && descriptor >= 0 && static_cast<std::size_t>(descriptor) < names.size()) {
    names[static_cast<std::size_t>(descriptor)] = name;
  }
  return descriptor;
}

// The argument after the flags, which exists only if a file may be created.
mode_t modeIn(int flags, va_list arguments) {
  return (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(arguments, mode_t) : 0;
}

}  // namespace

extern "C" {

int open(const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = modeIn(flags, arguments);
  va_end(arguments);
  return openFile(AT_FDCWD, path, flags, mode);
}

int openat(int base, const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = modeIn(flags, arguments);
  va_end(arguments);
  return openFile(base, path, flags, mode);
}

int open64(const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = modeIn(flags, arguments);
  va_end(arguments);
  return openFile(AT_FDCWD, path, flags, mode);
}

int openat64(int base, const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = modeIn(flags, arguments);
  va_end(arguments);
  return openFile(base, path, flags, mode);
}

ssize_t write(int descriptor, const void* data, size_t size) {
  return mustFailToWrite("write", descriptor, ::lseek(descriptor, 0, SEEK_CUR), size)
             ? -1
             : ::syscall(SYS_write, descriptor, data, size);
}

ssize_t pwrite64(int descriptor, const void* data, size_t size, off64_t offset) {
  return mustFailToWrite("pwrite", descriptor, offset, size)
             ? -1
             : ::syscall(SYS_pwrite64, descriptor, data, size, offset);
}

ssize_t pwrite(int descriptor, const void* data, size_t size, off_t offset) {
  return pwrite64(descriptor, data, size, offset);
}

int ftruncate64(int descriptor, off64_t size) noexcept {
  return mustFailToWrite("ftruncate", descriptor, size, 0)
             ? -1
             : static_cast<int>(::syscall(SYS_ftruncate, descriptor, size));
}

int ftruncate(int descriptor, off_t size) noexcept { return ftruncate64(descriptor, size); }

int fsync(int descriptor) {
  return mustFail("fsync", descriptor) ? -1 : static_cast<int>(::syscall(SYS_fsync, descriptor));
}

int fdatasync(int descriptor) {
  return mustFail("fdatasync", descriptor) ? -1
                                           : static_cast<int>(::syscall(SYS_fdatasync, descriptor));
}

int unlink(const char* path) noexcept {
  return mustFail({"unlink", path}) ? -1 : static_cast<int>(::syscall(SYS_unlink, path));
}

int unlinkat(int base, const char* path, int flags) noexcept {
  return mustFail({"unlink", absolute(base, path)})
             ? -1
             : static_cast<int>(::syscall(SYS_unlinkat, base, path, flags));
}

int remove(const char* path) noexcept {
  if (exists(AT_FDCWD, path) && mustFail({"unlink", path})) {
    return -1;
  }
  const auto result = static_cast<int>(::syscall(SYS_unlink, path));
  return result != 0 && errno == EISDIR ? static_cast<int>(::syscall(SYS_rmdir, path)) : result;
}

int rename(const char* from, const char* to) noexcept {
  return mustFail({"rename", from, to}) ? -1 : static_cast<int>(::syscall(SYS_rename, from, to));
}

int renameat2(int fromBase, const char* from, int toBase, const char* to, unsigned flags) noexcept {
  return mustFail({"rename", absolute(fromBase, from), absolute(toBase, to)})
             ? -1
             : static_cast<int>(::syscall(SYS_renameat2, fromBase, from, toBase, to, flags));
}

int mkdir(const char* path, mode_t mode) noexcept {
  return !exists(AT_FDCWD, path) && mustFail({"mkdir", path})
             ? -1
             : static_cast<int>(::syscall(SYS_mkdir, path, mode));
}

// Tells the world that this process begins to wait for a lock, which changes nothing. A scheduler
// answers when the lock may be free or time has passed; a caller that waits until a deadline looks
// at it after EINTR. A lock that may be free is an attempt, before which others may go on.
int flock(int descriptor, int operation) noexcept {
  if (worldSocket >= 0 && (operation & LOCK_NB) != 0 && vfpass::crash::isScheduled()) {
    vfpass::crash::ask({"attempt", nameOf(descriptor)});
  }
  const bool mayWait = worldSocket >= 0 && (operation & (LOCK_NB | LOCK_UN)) == 0;
  if (mayWait) {
    vfpass::crash::ask({"lock", nameOf(descriptor)});
  }
  const bool scheduled = mayWait && vfpass::crash::isScheduled();
  const auto result = static_cast<int>(
      ::syscall(SYS_flock, descriptor, scheduled ? operation | LOCK_NB : operation));
  if (scheduled && result != 0 && errno == EWOULDBLOCK) {
    errno = EINTR;
  }
  return result;
}
}
