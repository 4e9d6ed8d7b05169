#pragma once

#include <sys/stat.h>

#include <cstddef>
#include <filesystem>
#include <limits>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>

namespace vfpass {

// Whoever wrote a file or holds the other end of a pipe decides how long it is. These functions
// never hold more than the limit and one buffer, because they check it while they read.

/// A limit such as "4 MiB", "256 KiB" or "100 bytes".
std::string sizeText(std::size_t bytes);

/// Why a file or stream was not read, as a phrase for the caller's own error.
class ReadRefused : public std::runtime_error {
 public:
  ReadRefused(int error, const std::string& reason) : std::runtime_error(reason), error_(error) {}
  /// An errno; EFBIG if the content exceeds the limit.
  [[nodiscard]] int error() const { return error_; }

 private:
  int error_;
};

/// The remaining content of a descriptor. Throws ReadRefused, also for more than `limit` bytes.
std::string readBounded(int descriptor, std::size_t limit);

/// The content of a regular file; never blocks at a FIFO or a device. Throws ReadRefused.
std::string readBoundedFile(const std::filesystem::path& file, std::size_t limit);

/// Reads a descriptor line by line.
class BoundedLines {
 public:
  BoundedLines(int descriptor, std::size_t longest) : descriptor_(descriptor), longest_(longest) {}

  /// The next line without its end, or nullopt after the last one. The last line needs no end.
  /// Throws ReadRefused, also for a line of more than `longest` bytes.
  std::optional<std::string> next();

 private:
  int descriptor_;
  std::size_t longest_;
  std::string received_;
};

struct JsonLimits {
  std::size_t bytes;
  int levels;  ///< of objects and lists inside each other
  /// Members and elements in all. Each takes 16 bytes of memory or more, and two bytes of text.
  std::size_t values = std::numeric_limits<std::size_t>::max();
};

/// Why a text was refused, as a phrase for the caller's own error. Never quotes the text.
class JsonRefused : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Parses JSON that another program wrote, or that may be damaged. Throws JsonRefused for a text
/// that exceeds the limits, has an object with a duplicate member, or is not JSON.
nlohmann::json parseBoundedJson(std::string_view text, const JsonLimits& limits);

/// The reason why a file or directory is not trusted, and a command that resolves it.
struct Distrust {
  std::string reason;
  std::string remedy;
};

/// Applies one rule to all files that determine the actions of root (configuration, state, locks):
/// owned by root or the effective user, and writable neither by others nor by a group other than
/// root's. nullopt: trusted. `path` is used in the remedy only.
std::optional<Distrust> distrustOf(const struct stat& status, const std::string& path);

}  // namespace vfpass
