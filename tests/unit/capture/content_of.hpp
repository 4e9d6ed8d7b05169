#pragma once

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

namespace vfpass::capture {

/// The bytes of a file; nothing if it cannot be read.
inline std::string contentOf(const std::filesystem::path& path) {
  std::ifstream stream(path, std::ios::binary);
  std::ostringstream text;
  text << stream.rdbuf();
  return text.str();
}

}  // namespace vfpass::capture
