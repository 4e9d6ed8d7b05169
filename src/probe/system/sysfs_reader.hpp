#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace vfpass::probe {

/// Reads files below one directory, which is `/` outside tests. Text is trimmed and at most 4 KiB.
class SysfsReader {
 public:
  explicit SysfsReader(std::filesystem::path root = "/") : root_(std::move(root)) {}

  /// nullopt if it cannot be read.
  [[nodiscard]] std::optional<std::string> text(const std::string& path) const;
  /// The same, but empty instead of nullopt.
  [[nodiscard]] std::string textOrEmpty(const std::string& path) const;
  /// Up to `limit` unmodified bytes; empty if they cannot be read.
  [[nodiscard]] std::string bytes(const std::string& path, std::size_t limit) const;
  /// Whether a file of any length contains `wanted`; nullopt if it cannot be read.
  [[nodiscard]] std::optional<bool> contains(const std::string& path,
                                             const std::string& wanted) const;
  /// Calls `use` with what each read(2) returns, which is one record of /dev/kmsg, until there is
  /// no more; at most 100000 times. False if the file cannot be read.
  [[nodiscard]] bool eachRecord(const std::string& path,
                                const std::function<void(std::string_view)>& use) const;
  /// Sorted names in a directory; empty if there is no such directory.
  [[nodiscard]] std::vector<std::string> names(const std::string& folder) const;
  /// Last component of a link's target; empty if it is not a link.
  [[nodiscard]] std::string linkName(const std::string& path) const;
  /// The path with all links resolved, below the root: `/sys/devices/...`.
  [[nodiscard]] std::string resolved(const std::string& path) const;
  [[nodiscard]] bool exists(const std::string& path) const;

 private:
  [[nodiscard]] std::filesystem::path at(const std::string& path) const;

  std::filesystem::path root_;
};

}  // namespace vfpass::probe
