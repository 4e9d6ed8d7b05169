#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "vfpass/config/configuration.hpp"

namespace vfpass::config {

/// A folder of its own that goes away with the test.
class TemporaryFolder {
 public:
  TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder();

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  /// Writes a file with mode 0644, and the folders above it.
  std::filesystem::path write(const std::string& name, const std::string& text) const;

 private:
  std::filesystem::path path_;
};

std::string readWhole(const std::filesystem::path& file);

/// A text read as the mapping `m.yaml` or as `host.yaml`.
struct ReadMapping {
  Mapping mapping;
  std::vector<std::string> problems;  ///< one line each
};
ReadMapping readMappingText(const std::string& text);
std::vector<std::string> hostProblems(const std::string& text);

/// A mapping with one VF, `rest` below it in block style without indentation.
std::string withVf(const std::string& rest, const std::string& top = "");

}  // namespace vfpass::config
