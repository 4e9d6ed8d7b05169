#include <fcntl.h>

#include <cerrno>
#include <memory>

#include "archive_library.hpp"
#include "vfpass/base/file_descriptor.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/capture/captured_tree.hpp"
#include "vfpass/error.hpp"

namespace vfpass::capture {
namespace {

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
  const std::unique_ptr<archive, decltype(library.freeWriter)> tar(library.newWriter(),
                                                                   library.freeWriter);
  library.setFormatPaxRestricted(tar.get());
  require(library, library.openDescriptor(tar.get(), output.get()), tar.get(), file);
  for (const auto& [path, entry] : tree) {
    addEntry(library, tar.get(), path, entry, file);
  }
  require(library, library.close(tar.get()), tar.get(), file);
}

}  // namespace vfpass::capture
