#include "vfpass/base/bounded_read.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <utility>

#include "vfpass/base/file_descriptor.hpp"
#include "vfpass/base/text.hpp"

namespace vfpass {
namespace {

ReadRefused failure(int error) { return {error, errnoText(error)}; }

ReadRefused tooLong(std::size_t limit) { return {EFBIG, "larger than " + sizeText(limit)}; }

// Appends what one read(2) returns. Whether there was something.
bool readMore(int descriptor, std::string& text) {
  std::array<char, 65536> buffer;  // NOLINT: only the initialized part is used
  ssize_t count = -1;
  do {
    count = ::read(descriptor, buffer.data(), buffer.size());
  } while (count < 0 && errno == EINTR);
  if (count < 0) {
    throw failure(errno);
  }
  text.append(buffer.data(), static_cast<std::size_t>(count));
  return count > 0;
}

}  // namespace

std::string sizeText(std::size_t bytes) {
  constexpr std::size_t kibibyte = 1024;
  constexpr std::size_t mebibyte = kibibyte * kibibyte;
  if (bytes % kibibyte != 0) {
    return std::to_string(bytes) + " bytes";
  }
  return bytes % mebibyte == 0 ? std::to_string(bytes / mebibyte) + " MiB"
                               : std::to_string(bytes / kibibyte) + " KiB";
}

std::string readBounded(int descriptor, std::size_t limit) {
  std::string text;
  while (readMore(descriptor, text)) {
    if (text.size() > limit) {
      throw tooLong(limit);
    }
  }
  return text;
}

std::string readBoundedFile(const std::filesystem::path& file, std::size_t limit) {
  // Without O_NONBLOCK open(2) of a FIFO blocks until a process opens it for writing.
  const FileDescriptor opened(::open(file.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY));
  struct stat status {};
  if (!opened || ::fstat(opened.get(), &status) != 0) {
    throw failure(errno);
  }
  if (!S_ISREG(status.st_mode)) {
    throw ReadRefused(EINVAL, "not a regular file");
  }
  return readBounded(opened.get(), limit);
}

std::optional<std::string> BoundedLines::next() {
  auto end = received_.find('\n');
  while (end == std::string::npos && received_.size() <= longest_) {
    const auto searched = received_.size();
    if (!readMore(descriptor_, received_)) {
      return received_.empty() ? std::nullopt
                               : std::optional(std::exchange(received_, std::string()));
    }
    end = received_.find('\n', searched);
  }
  if (end == std::string::npos || end > longest_) {
    throw tooLong(longest_);
  }
  std::string line = received_.substr(0, end);
  received_.erase(0, end + 1);
  return line;
}

}  // namespace vfpass
