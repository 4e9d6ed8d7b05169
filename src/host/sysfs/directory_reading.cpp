#include "sysfs/directory_reading.hpp"

#include <dirent.h>
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
#include "vfpass/host/recording.hpp"
#include "vfpass/host/root.hpp"

namespace vfpass::host {
namespace {

constexpr std::size_t entryLimit = 65536;
constexpr int raceLimit = 16;

}  // namespace

int openBelow(int directory, const std::string& path, int flags, Containment containment) {
  if (containment == Containment::none) {
    return ::openat(directory, path.c_str(), flags);
  }
  open_how how{};
  how.flags = static_cast<std::uint64_t>(flags);
  // RESOLVE_IN_ROOT treats the directory as `/`, for absolute links as well as for `..`. The call
  // fails with EAGAIN when a component is renamed during the lookup (openat2(2)).
  how.resolve = containment == Containment::asRoot ? RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS
                                                   : RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS;
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

std::optional<std::string> readWhole(const FileDescriptor& file, std::size_t limit,
                                     Recording* recording) {
  if (!file || !isRegular(file.get())) {
    return std::nullopt;
  }
  errno = 0;
  std::string bytes = readBytes(file.get(), 0, limit);
  if (bytes.empty() && errno != 0) {
    return std::nullopt;
  }
  if (recording != nullptr) {
    recording->noteBytes(file.get(), 0, bytes);
  }
  return bytes;
}

void visitNames(FileDescriptor directory, const std::function<bool(const char* name)>& visit) {
  if (!directory) {
    return;
  }
  const std::unique_ptr<DIR, int (*)(DIR*)> stream(::fdopendir(directory.get()), ::closedir);
  if (!stream) {
    return;
  }
  static_cast<void>(directory.release());  // the stream owns it now
  while (const dirent* entry = ::readdir(stream.get())) {
    const std::string_view name = entry->d_name;
    if (name != "." && name != ".." && !visit(entry->d_name)) {
      return;
    }
  }
}

std::vector<std::string> listNames(FileDescriptor directory, std::string_view prefix,
                                   Recording* recording) {
  // Used after the stream has closed the original.
  const FileDescriptor recorded(recording != nullptr ? ::fcntl(directory.get(), F_DUPFD_CLOEXEC, 0)
                                                     : -1);
  std::vector<std::string> names;
  visitNames(std::move(directory), [&](const char* name) {
    if (std::string_view(name).starts_with(prefix)) {
      names.emplace_back(name);
    }
    return names.size() < entryLimit;
  });
  std::sort(names.begin(), names.end());
  if (recorded) {
    recording->noteNames(recorded.get(), names);
  }
  return names;
}

std::optional<std::string> readLink(const FileDescriptor& link, Recording* recording) {
  // An empty name reads the link that the descriptor itself refers to (readlinkat(2)).
  auto target = link ? readLinkAt(link.get(), "") : std::nullopt;
  if (target && recording != nullptr) {
    recording->noteLink(link.get(), *target);
  }
  return target;
}

std::optional<std::string> readLinkAt(int directory, const std::string& name) {
  std::array<char, PATH_MAX> target;  // NOLINT: only the initialized part is used
  const ssize_t length = ::readlinkat(directory, name.c_str(), target.data(), target.size());
  if (length <= 0) {
    return std::nullopt;
  }
  return std::string(target.data(), static_cast<std::size_t>(length));
}

std::optional<std::uint64_t> numberIn(const std::optional<std::string>& text) {
  if (!text) {
    return std::nullopt;
  }
  const std::string_view digits = trim(*text);
  return digits.starts_with("0x") ? parseNumber(digits.substr(2), 16) : parseNumber(digits);
}

std::optional<std::string> lastComponent(const std::optional<std::string>& path) {
  if (!path) {
    return std::nullopt;
  }
  return path->substr(path->rfind('/') + 1);  // npos + 1 is 0: all of it
}

}  // namespace vfpass::host
