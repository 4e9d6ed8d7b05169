#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace vfpass::probe {

/// Reads below one folder, `/` outside tests. Text is trimmed and at most 4 KiB.
class SysfsReader {
 public:
  explicit SysfsReader(std::filesystem::path root = "/") : root_(std::move(root)) {}

  /// nullopt when it cannot be read.
  [[nodiscard]] std::optional<std::string> text(const std::string& path) const;
  /// The same, but empty instead of nullopt.
  [[nodiscard]] std::string textOrEmpty(const std::string& path) const;
  /// Up to `limit` bytes as they are; empty when it cannot be read.
  [[nodiscard]] std::string bytes(const std::string& path, std::size_t limit) const;
  /// Names in a folder, sorted; empty when there is none.
  [[nodiscard]] std::vector<std::string> names(const std::string& folder) const;
  /// The last part of where a link points to; empty when it is no link.
  [[nodiscard]] std::string linkName(const std::string& path) const;
  /// The folder that a path stands for, without links, below the root: `/sys/devices/...`.
  [[nodiscard]] std::string resolved(const std::string& path) const;
  [[nodiscard]] bool exists(const std::string& path) const;

 private:
  [[nodiscard]] std::filesystem::path at(const std::string& path) const;

  std::filesystem::path root_;
};

}  // namespace vfpass::probe
