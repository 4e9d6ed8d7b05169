#include "vfpass/base/bounded_read.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

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

namespace {

using Json = nlohmann::json;
using Event = Json::parse_event_t;

/// Refuses during parsing: nlohmann-json 3.11 itself parses any depth and then overflows the stack
/// in its recursive functions, and it silently keeps one of two duplicate members.
class Guard {
 public:
  explicit Guard(const JsonLimits& limits) : limits_(limits) {}

  void see(int depth, Event event, const Json& parsed) {
    if (event == Event::object_start || event == Event::array_start) {
      requireLevel(depth);
    }
    if (event != Event::object_end && event != Event::array_end && event != Event::key) {
      requireRoom();
    }
    if (event == Event::object_start) {
      open_.emplace_back();
    } else if (event == Event::object_end) {
      open_.pop_back();
    } else if (event == Event::key) {
      requireNew(parsed.get_ref<const std::string&>());
    }
  }

 private:
  void requireLevel(int depth) const {
    if (depth >= limits_.levels) {
      throw JsonRefused("nested more than " + std::to_string(limits_.levels) + " levels deep");
    }
  }

  void requireRoom() {
    if (++values_ > limits_.values) {
      throw JsonRefused("more than " + std::to_string(limits_.values) + " values");
    }
  }

  void requireNew(const std::string& key) {
    if (!open_.back().insert(key).second) {
      throw JsonRefused("an object has a duplicate member");
    }
  }

  JsonLimits limits_;
  std::size_t values_ = 0;
  std::vector<std::set<std::string>> open_;  // the keys of each object that has not ended
};

}  // namespace

Json parseBoundedJson(std::string_view text, const JsonLimits& limits) {
  if (text.size() > limits.bytes) {
    throw JsonRefused("larger than " + sizeText(limits.bytes));
  }
  Guard guard(limits);
  const auto seeEvent = [&](int depth, Event event, const Json& parsed) {
    guard.see(depth, event, parsed);
    return true;
  };
  try {
    return Json::parse(text, seeEvent);
  } catch (const Json::parse_error& error) {
    throw JsonRefused("not valid JSON at byte " + std::to_string(error.byte));
  } catch (const Json::exception&) {  // such as a number that is too large
    throw JsonRefused("not valid JSON");
  }
}

std::optional<Distrust> distrustOf(const struct stat& status, const std::string& path) {
  if (status.st_uid != 0 && status.st_uid != ::geteuid()) {
    return Distrust{"expected owner root, found user ID " + std::to_string(status.st_uid),
                    "chown root " + shellArgument(path)};
  }
  if ((status.st_mode & S_IWOTH) != 0) {
    return Distrust{"writable by everyone", "chmod o-w " + shellArgument(path)};
  }
  if ((status.st_mode & S_IWGRP) != 0 && status.st_gid != 0) {
    return Distrust{"writable by group ID " + std::to_string(status.st_gid),
                    "chmod g-w " + shellArgument(path)};
  }
  return std::nullopt;
}

}  // namespace vfpass
