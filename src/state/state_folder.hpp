#pragma once

#include <sys/stat.h>

#include <filesystem>
#include <string>

#include "vfpass/error.hpp"

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

/// What the group of the directory may read; see replaceReadersCopy().
inline std::filesystem::path readersCopyOf(const Location& location) {
  return location.folder / "vfpass-readable.db";
}

/// A complete database that replaces a damaged one; see setAsideCorruptDatabase().
inline std::filesystem::path replacementOf(const Location& location) {
  return location.folder / "vfpass-rebuilt.db";
}

/// Durably creates a missing directory with mode 0700 (parents with the default mode). Refuses a
/// directory that requireTrustedFolder() refuses. Returns its path without symbolic links.
std::filesystem::path makePrivateFolder(const std::filesystem::path& folder);

/// Throws Error (badInput) unless distrustOf() (vfpass/base/bounded_read.hpp) trusts it: files in
/// these directories decide which devices root assigns to guests.
void requireTrusted(const std::filesystem::path& path, const struct stat& status);

/// The same for a directory. Refuses a symbolic link in its place, even to a trusted directory;
/// links above it are allowed.
void requireTrustedFolder(const std::filesystem::path& folder);

/// The same for a regular file; a missing one is accepted. Does not open it: closing any descriptor
/// of a database drops the locks of SQLite on it.
void requireTrustedFile(const std::filesystem::path& file);

/// Durably creates an empty file with mode 0600 unless the name is taken.
void makePrivateFile(const std::filesystem::path& file);

/// Durably writes a new file with mode 0600. Throws Error if the name is taken, or if not all of
/// `text` could be written.
void writePrivateFile(const std::filesystem::path& file, const std::string& text);

/// Takes the permissions of group and others from an existing file that requireTrustedFile()
/// accepts: whoever can open a file, also only for reading, can lock it (flock(2), fcntl(2)).
void makeExistingFilePrivate(const std::filesystem::path& file);

/// fsyncs the directory itself, so that created or changed names survive a power loss.
void syncFolder(const std::filesystem::path& folder);

/// The error for a system call that failed with `error` in this directory: a message with the
/// system's reason and a matching remedy (no room, read-only, no permission).
Error systemFailure(const std::string& what, int error, const std::filesystem::path& folder);

/// Whether systemFailure() has a remedy of its own for this error.
bool hasKnownRemedy(int error);

}  // namespace vfpass::state
