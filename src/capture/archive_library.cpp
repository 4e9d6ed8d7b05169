#include "archive_library.hpp"

namespace vfpass::capture {

ArchiveLibrary::ArchiveLibrary()
    : library_({"libarchive.so.13"},
               "install libarchive (Debian: libarchive13, Fedora: libarchive), or specify a "
               "directory instead of a tar file") {
  library_.require(newWriter, "archive_write_new");
  library_.require(freeWriter, "archive_write_free");
  library_.require(setFormatPaxRestricted, "archive_write_set_format_pax_restricted");
  library_.require(openDescriptor, "archive_write_open_fd");
  library_.require(writeHeader, "archive_write_header");
  library_.require(writeData, "archive_write_data");
  library_.require(close, "archive_write_close");
  library_.require(errorString, "archive_error_string");
  library_.require(newEntry, "archive_entry_new");
  library_.require(freeEntry, "archive_entry_free");
  library_.require(setPathname, "archive_entry_set_pathname");
  library_.require(setTime, "archive_entry_set_mtime");
  library_.require(setFileType, "archive_entry_set_filetype");
  library_.require(setPermissions, "archive_entry_set_perm");
  library_.require(setSize, "archive_entry_set_size");
  library_.require(setLinkTarget, "archive_entry_set_symlink");
}

}  // namespace vfpass::capture
