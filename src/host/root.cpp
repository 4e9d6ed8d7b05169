#include "root.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <memory>

#include "vfpass/base/text.hpp"
#include "vfpass/error.hpp"

namespace vfpass::host {
namespace {

constexpr std::size_t entryLimit = 65536;
constexpr int raceLimit = 16;

bool sameDirectory(int descriptor, const char* path) {
  struct stat one {};
  struct stat other {};
  return ::fstat(descriptor, &one) == 0 && ::stat(path, &other) == 0 &&
         one.st_dev == other.st_dev && one.st_ino == other.st_ino;
}

// RESOLVE_IN_ROOT takes the root for `/`, for absolute links and for `..` alike. It answers EAGAIN
// when something is renamed under way (openat2(2)).
int openInRoot(int directory, const std::string& path, int flags) {
  open_how how{};
  how.flags = static_cast<std::uint64_t>(flags);
  how.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS;
  for (int attempt = 0; attempt < raceLimit; ++attempt) {
    const auto descriptor = ::syscall(SYS_openat2, directory, path.c_str(), &how, sizeof how);
    if (descriptor >= 0 || errno != EAGAIN) {
      return static_cast<int>(descriptor);
    }
  }
  return -1;
}

bool isRegular(int descriptor) {
  struct stat status {};
  return ::fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode);
}

}  // namespace

std::string readBytes(int descriptor, std::size_t offset, std::size_t length) {
  std::string bytes(length, '\0');
  std::size_t got = 0;
  while (got < length) {
    const ssize_t count =
        ::pread(descriptor, bytes.data() + got, length - got, static_cast<off_t>(offset + got));
    if (count < 0 && errno == EINTR) {
      continue;
    }
    if (count <= 0) {
      break;
    }
    got += static_cast<std::size_t>(count);
  }
  bytes.resize(got);
  return bytes;
}

Root::Root(const std::filesystem::path& path)
    : directory_(::open(path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC)) {
  if (!directory_) {
    throw Error("cannot open the system root " + printable(path.native()) + ": " + errnoText(errno),
                "Name a directory that `vfpass snapshot` made.", ExitCode::badInput);
  }
  live_ = sameDirectory(directory_.get(), "/");
}

FileDescriptor Root::open(const std::string& path, int flags) const {
  flags |= O_CLOEXEC;
  return FileDescriptor(live_ ? ::openat(directory_.get(), path.c_str(), flags)
                              : openInRoot(directory_.get(), path, flags));
}

std::optional<std::string> Root::readText(const std::string& path, std::size_t limit) const {
  // A captured tree may hold anything, also a FIFO whose opening would wait for a writer.
  const FileDescriptor file = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY);
  if (!file || !isRegular(file.get())) {
    return std::nullopt;
  }
  errno = 0;
  const std::string bytes = readBytes(file.get(), 0, limit);
  if (bytes.empty() && errno != 0) {
    return std::nullopt;
  }
  return std::string(trim(bytes));
}

std::optional<std::uint64_t> Root::readNumber(const std::string& path) const {
  const auto text = readText(path);
  if (!text) {
    return std::nullopt;
  }
  return text->starts_with("0x") ? parseNumber(std::string_view(*text).substr(2), 16)
                                 : parseNumber(*text);
}

std::vector<std::string> Root::list(const std::string& path) const {
  FileDescriptor directory = open(path, O_RDONLY | O_DIRECTORY);
  if (!directory) {
    return {};
  }
  const std::unique_ptr<DIR, int (*)(DIR*)> stream(::fdopendir(directory.get()), ::closedir);
  if (!stream) {
    return {};
  }
  static_cast<void>(directory.release());  // the stream owns it now
  std::vector<std::string> names;
  while (const dirent* entry = ::readdir(stream.get())) {
    const std::string name = entry->d_name;
    if (name != "." && name != ".." && names.size() < entryLimit) {
      names.push_back(name);
    }
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::optional<std::string> Root::linkTarget(const std::string& path) const {
  const FileDescriptor link = open(path, O_PATH | O_NOFOLLOW);
  std::array<char, PATH_MAX> target{};
  // An empty name reads the link that the descriptor itself stands for (readlinkat(2)).
  const ssize_t length =
      link ? ::readlinkat(link.get(), "", target.data(), target.size()) : ssize_t{-1};
  if (length <= 0) {
    return std::nullopt;
  }
  return std::string(target.data(), static_cast<std::size_t>(length));
}

std::optional<std::string> Root::linkName(const std::string& path) const {
  const auto target = linkTarget(path);
  if (!target) {
    return std::nullopt;
  }
  return target->substr(target->rfind('/') + 1);  // npos + 1 is 0: the whole of it
}

bool Root::exists(const std::string& path) const {
  return static_cast<bool>(open(path, O_PATH | O_NOFOLLOW));
}

}  // namespace vfpass::host
