#include "sysfs/file_reading.hpp"

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
#include "vfpass/error.hpp"
#include "vfpass/host/root.hpp"

namespace vfpass::host {
namespace {

constexpr std::size_t entryLimit = 65536;
constexpr int raceLimit = 16;

int tryToOpen(int directory, const std::string& path, int flags, Containment containment) {
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

}  // namespace

// A device whose files cannot be opened for want of descriptors would seem to be gone, and a
// rollback would leave it as it is.
int openBelow(int directory, const std::string& path, int flags, Containment containment) {
  const int descriptor = tryToOpen(directory, path, flags, containment);
  if (descriptor < 0 && (errno == EMFILE || errno == ENFILE)) {
    throw Error("cannot open " + printable(path) + ": " + errnoText(errno),
                "end programs that have many files open, or raise the limit (`ulimit -n` of a "
                "process, `sysctl fs.file-max` of the host)");
  }
  return descriptor;
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

namespace {

constexpr std::size_t chunk = std::size_t{64} << 10U;
// A line of mountinfo has two paths and the options, each of at most four pages when escaped.
constexpr std::size_t longestLine = std::size_t{1} << 20U;

// Visits the complete lines and removes them from the text; false: `visit` did.
bool takeLines(std::string& text, const std::function<bool(std::string_view line)>& visit) {
  std::size_t start = 0;
  for (auto end = text.find('\n'); end != std::string::npos; end = text.find('\n', start)) {
    if (!visit(std::string_view(text).substr(start, end - start))) {
      return false;
    }
    start = end + 1;
  }
  text.erase(0, start);
  return text.size() <= longestLine;
}

}  // namespace

LinesRead eachLine(const Root& root, const std::string& path,
                   const std::function<bool(std::string_view line)>& visit) {
  const FileDescriptor file = root.open(path, textFlags);
  if (!file || !isRegular(file.get())) {
    return LinesRead::none;
  }
  std::string text;
  for (std::size_t offset = 0;;) {
    const std::size_t kept = text.size();
    text.resize(kept + chunk);
    const ssize_t count = ::read(file.get(), text.data() + kept, chunk);
    text.resize(kept + (count > 0 ? static_cast<std::size_t>(count) : 0));
    if (count < 0 && errno != EINTR) {
      return offset == 0 ? LinesRead::none : LinesRead::some;
    }
    if (root.recording() != nullptr) {
      root.recording()->noteBytes(file.get(), offset, std::string_view(text).substr(kept));
    }
    if (count == 0) {
      return text.empty() || visit(text) ? LinesRead::all : LinesRead::some;
    }
    offset += text.size() - kept;
    if (!takeLines(text, visit)) {
      return LinesRead::some;
    }
  }
}

}  // namespace vfpass::host
