#pragma once

#include <archive.h>
#include <archive_entry.h>

#include "vfpass/base/shared_library.hpp"

namespace vfpass::capture {

/// libarchive, loaded to write a tar file. It brings a dozen libraries with it: XML, ICU,
/// compression.
class ArchiveLibrary {
 public:
  /// Throws Error with the loader's message if libarchive cannot be loaded.
  ArchiveLibrary();

  decltype(&::archive_write_new) newWriter = nullptr;
  decltype(&::archive_write_free) freeWriter = nullptr;
  decltype(&::archive_write_set_format_pax_restricted) setFormatPaxRestricted = nullptr;
  decltype(&::archive_write_open_fd) openDescriptor = nullptr;
  decltype(&::archive_write_header) writeHeader = nullptr;
  decltype(&::archive_write_data) writeData = nullptr;
  decltype(&::archive_write_close) close = nullptr;
  decltype(&::archive_error_string) errorString = nullptr;
  decltype(&::archive_entry_new) newEntry = nullptr;
  decltype(&::archive_entry_free) freeEntry = nullptr;
  decltype(&::archive_entry_set_pathname) setPathname = nullptr;
  decltype(&::archive_entry_set_mtime) setTime = nullptr;
  decltype(&::archive_entry_set_filetype) setFileType = nullptr;
  decltype(&::archive_entry_set_perm) setPermissions = nullptr;
  decltype(&::archive_entry_set_size) setSize = nullptr;
  decltype(&::archive_entry_set_symlink) setLinkTarget = nullptr;

 private:
  SharedLibrary library_;
};

}  // namespace vfpass::capture
