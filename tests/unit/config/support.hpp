#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "vfpass/config/configuration.hpp"

namespace vfpass::config {

/// A temporary directory, removed in the destructor.
class TemporaryFolder {
 public:
  TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder();

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  /// Writes a file with mode 0644 and creates its parent directories.
  std::filesystem::path write(const std::string& name, const std::string& text) const;

 private:
  std::filesystem::path path_;
};

std::string readWhole(const std::filesystem::path& file);

/// The text of each problem.
std::vector<std::string> lines(const std::vector<Problem>& problems);

/// The result of reading a text as the mapping `m.yaml`.
struct ReadMapping {
  Mapping mapping;
  std::vector<std::string> problems;  ///< one line each
};
ReadMapping readMappingText(const std::string& text);
/// The problems of a text read as `host.yaml`.
std::vector<std::string> hostProblems(const std::string& text);

/// The text of a mapping with one VF. `rest`: further keys of the VF in block style, not indented;
/// `top`: further top-level keys.
std::string withVf(const std::string& rest, const std::string& top = "");

}  // namespace vfpass::config
