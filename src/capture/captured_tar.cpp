#include <archive.h>
#include <archive_entry.h>
#include <fcntl.h>

#include <cerrno>
#include <memory>

#include "vfpass/base/file_descriptor.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/capture/captured_tree.hpp"
#include "vfpass/error.hpp"

namespace vfpass::capture {
namespace {

using Kind = host::RecordedEntry::Kind;

void require(int result, archive* tar, const std::filesystem::path& file) {
  if (result < ARCHIVE_WARN) {
    const char* reason = archive_error_string(tar);
    throw Error("cannot write " + printable(file.native()) + ": " +
                    printable(reason == nullptr ? "unknown libarchive error" : reason),
                "check free space and permissions");
  }
}

// Parent directories need no entries of their own: tar creates them when it extracts a file.
void addEntry(archive* tar, const std::string& path, const host::RecordedEntry& entry,
              const std::filesystem::path& file) {
  const std::unique_ptr<archive_entry, void (*)(archive_entry*)> header(archive_entry_new(),
                                                                        archive_entry_free);
  archive_entry_set_pathname(header.get(), path.c_str());
  archive_entry_set_mtime(header.get(), 0, 0);
  switch (entry.kind) {
    case Kind::file:
      archive_entry_set_filetype(header.get(), AE_IFREG);
      archive_entry_set_perm(header.get(), 0644);
      archive_entry_set_size(header.get(), static_cast<la_int64_t>(entry.content.size()));
      break;
    case Kind::link:
      archive_entry_set_filetype(header.get(), AE_IFLNK);
      archive_entry_set_perm(header.get(), 0777);
      archive_entry_set_symlink(header.get(), entry.content.c_str());
      break;
    case Kind::directory:
      archive_entry_set_filetype(header.get(), AE_IFDIR);
      archive_entry_set_perm(header.get(), 0755);
      break;
  }
  require(archive_write_header(tar, header.get()), tar, file);
  if (entry.kind == Kind::file && !entry.content.empty() &&
      archive_write_data(tar, entry.content.data(), entry.content.size()) < 0) {
    require(ARCHIVE_FATAL, tar, file);
  }
}

}  // namespace

void writeTar(const CapturedTree& tree, const std::filesystem::path& file) {
  const FileDescriptor output(
      ::open(file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644));
  if (!output) {
    throw Error("cannot create " + printable(file.native()) + ": " + errnoText(errno),
                "specify a file that does not exist, in a directory that is writable",
                errno == EEXIST ? ExitCode::badInput : ExitCode::failed);
  }
  const std::unique_ptr<archive, int (*)(archive*)> tar(archive_write_new(), archive_write_free);
  archive_write_set_format_pax_restricted(tar.get());
  require(archive_write_open_fd(tar.get(), output.get()), tar.get(), file);
  for (const auto& [path, entry] : tree) {
    addEntry(tar.get(), path, entry, file);
  }
  require(archive_write_close(tar.get()), tar.get(), file);
}

}  // namespace vfpass::capture
