#include <archive.h>
#include <archive_entry.h>
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <memory>

#include "vfpass/base/file_descriptor.hpp"
#include "vfpass/base/scope_guard.hpp"
#include "vfpass/base/shared_library.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/capture/captured_tree.hpp"
#include "vfpass/error.hpp"

namespace vfpass::capture {
namespace {

/// libarchive, loaded to write a tar file. It brings a dozen libraries with it: XML, ICU,
/// compression.
class ArchiveLibrary {
 public:
  /// Throws Error with the loader's message if libarchive cannot be loaded.
  ArchiveLibrary()
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

using Kind = host::RecordedEntry::Kind;

void require(const ArchiveLibrary& library, int result, archive* tar,
             const std::filesystem::path& file) {
  if (result < ARCHIVE_WARN) {
    const char* reason = library.errorString(tar);
    throw Error("cannot write " + printable(file.native()) + ": " +
                    printable(reason == nullptr ? "unknown libarchive error" : reason),
                "check free space and permissions");
  }
}

// Parent directories need no entries of their own: tar creates them when it extracts a file.
void addEntry(const ArchiveLibrary& library, archive* tar, const std::string& path,
              const host::RecordedEntry& entry, const std::filesystem::path& file) {
  const std::unique_ptr<archive_entry, decltype(library.freeEntry)> header(library.newEntry(),
                                                                           library.freeEntry);
  library.setPathname(header.get(), path.c_str());
  library.setTime(header.get(), 0, 0);
  switch (entry.kind) {
    case Kind::file:
      library.setFileType(header.get(), AE_IFREG);
      library.setPermissions(header.get(), 0644);
      library.setSize(header.get(), static_cast<la_int64_t>(entry.content.size()));
      break;
    case Kind::link:
      library.setFileType(header.get(), AE_IFLNK);
      library.setPermissions(header.get(), 0777);
      library.setLinkTarget(header.get(), entry.content.c_str());
      break;
    case Kind::directory:
      library.setFileType(header.get(), AE_IFDIR);
      library.setPermissions(header.get(), 0755);
      break;
  }
  require(library, library.writeHeader(tar, header.get()), tar, file);
  if (entry.kind == Kind::file && !entry.content.empty() &&
      library.writeData(tar, entry.content.data(), entry.content.size()) < 0) {
    require(library, ARCHIVE_FATAL, tar, file);
  }
}

}  // namespace

void writeTar(const CapturedTree& tree, const std::filesystem::path& file) {
  const ArchiveLibrary library;
  const FileDescriptor output(
      ::open(file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644));
  if (!output) {
    throw Error("cannot create " + printable(file.native()) + ": " + errnoText(errno),
                "specify a file that does not exist, in a directory that is writable",
                errno == EEXIST ? ExitCode::badInput : ExitCode::failed);
  }
  ScopeGuard discard([&] { ::unlink(file.c_str()); });
  const std::unique_ptr<archive, decltype(library.freeWriter)> tar(library.newWriter(),
                                                                   library.freeWriter);
  library.setFormatPaxRestricted(tar.get());
  require(library, library.openDescriptor(tar.get(), output.get()), tar.get(), file);
  for (const auto& [path, entry] : tree) {
    addEntry(library, tar.get(), path, entry, file);
  }
  require(library, library.close(tar.get()), tar.get(), file);
  discard.disarm();
}

}  // namespace vfpass::capture
