#pragma once

#include <filesystem>

namespace vfpass::state {

/// Paths of the state. SQLite puts `-wal` and `-shm` next to the file.
struct Location {
  std::filesystem::path folder;
  std::filesystem::path file;
};

inline Location databaseIn(const std::filesystem::path& folder) {
  return {folder, folder / "vfpass.db"};
}

inline std::filesystem::path walOf(const Location& location) {
  return location.file.string() + "-wal";
}

inline std::filesystem::path shmOf(const Location& location) {
  return location.file.string() + "-shm";
}

/// What the group of the directory may read; see readers_copy.hpp.
inline std::filesystem::path readersCopyOf(const Location& location) {
  return location.folder / "vfpass-readable.db";
}

}  // namespace vfpass::state
