#include "vfpass/base/write_file.hpp"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <functional>
#include <optional>
#include <system_error>

#include "vfpass/base/file_descriptor.hpp"
#include "vfpass/base/scope_guard.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/error.hpp"

namespace vfpass {
namespace {

std::string remedyForWrite(int error, const std::filesystem::path& folder) {
  switch (error) {
    case ENOSPC:
    case EDQUOT:
    case EFBIG:  // the process's file size limit (ulimit -f), which stops a write like a full disk
      return "make room in the file system of " + printable(folder.string()) + " (`df -h " +
             shellArgument(folder.string()) + "`), then run the command again";
    case EACCES:
    case EPERM:
      return "run as root, or as the owner of " + printable(folder.string());
    case EROFS:
      return "make the file system of " + printable(folder.string()) + " writable";
    default:
      return "check " + printable(folder.string());
  }
}

[[noreturn]] void throwUnwritten(const std::filesystem::path& file, int error,
                                 const std::string& remedy) {
  throw Error("cannot write " + printable(file.string()) + ": " + errnoText(error),
              remedy.empty() ? remedyForWrite(error, file.parent_path()) : remedy);
}

bool writeCompletely(int descriptor, const std::string& content) {
  for (std::size_t done = 0; done < content.size();) {
    const ssize_t count = ::write(descriptor, content.data() + done, content.size() - done);
    if (count < 0 && errno != EINTR) {
      return false;
    }
    done += count > 0 ? static_cast<std::size_t>(count) : 0;
  }
  return true;
}

/// How a file gets its content.
struct Writing {
  std::function<bool(int)> prepare;               ///< sets mode and owner; whether it could
  std::function<bool(const std::string&)> place;  ///< gives the draft its name; whether it could
  bool durable = true;                            ///< also after a power failure
  std::string remedy = {};                        ///< empty: that of the error
};

void writeDraft(const std::filesystem::path& file, const std::string& content,
                const Writing& writing) {
  // A name that begins with a dot is not a mapping, should a signal end the process here.
  std::string draft = file.parent_path() / ("." + file.filename().string() + ".XXXXXX");
  const FileDescriptor target(::mkostemp(draft.data(), O_CLOEXEC));
  if (!target) {
    throwUnwritten(file, errno, writing.remedy);
  }
  ScopeGuard removeDraft([&] { ::unlink(draft.c_str()); });
  if (!writeCompletely(target.get(), content) || (writing.durable && ::fsync(target.get()) != 0) ||
      !writing.prepare(target.get()) || !writing.place(draft)) {
    throwUnwritten(file, errno, writing.remedy);
  }
  removeDraft.disarm();
  if (writing.durable) {
    syncNames(file.parent_path());
  }
}

// Gives the draft a name that must be free; without RENAME_NOREPLACE, which NFS and OpenZFS before
// 2.2 refuse (EINVAL, rename(2)), by a link.
bool placeNew(const std::string& draft, const std::filesystem::path& file) {
  if (::renameat2(AT_FDCWD, draft.c_str(), AT_FDCWD, file.c_str(), RENAME_NOREPLACE) == 0) {
    return true;
  }
  if (errno != EINVAL || ::link(draft.c_str(), file.c_str()) != 0) {
    return false;
  }
  ::unlink(draft.c_str());
  return true;
}

bool makeReadable(int draft) { return ::fchmod(draft, 0644) == 0; }

constexpr const char* outputRemedy = "specify a file in a directory that exists and has free space";

bool isInDevOrProc(const std::filesystem::path& file) {
  std::error_code unknown;
  const auto directory =
      std::filesystem::canonical(std::filesystem::absolute(file).parent_path(), unknown);
  return directory == "/dev" || directory.native().starts_with("/proc/");
}

// A rename would replace a device or pipe for everybody: /dev/null, /dev/stdout, `>(command)`. The
// link of another user could lead to any device: it is replaced like a file. Returns the device or
// pipe; nullopt: there is none.
std::optional<struct stat> findStream(const std::filesystem::path& file) {
  struct stat entry = {};
  struct stat target = {};
  if (::lstat(file.c_str(), &entry) != 0 || ::stat(file.c_str(), &target) != 0) {
    return std::nullopt;
  }
  const bool link = S_ISLNK(entry.st_mode);
  if (link && S_ISREG(target.st_mode) && isInDevOrProc(file)) {
    throw Error("cannot write " + printable(file.string()) + ": it leads to an open file",
                "specify that file by its own name");
  }
  if (S_ISREG(target.st_mode) || (link && entry.st_uid != 0 && entry.st_uid != ::geteuid())) {
    return std::nullopt;
  }
  if (!S_ISCHR(target.st_mode) && !S_ISFIFO(target.st_mode)) {
    throwUnwritten(file, S_ISDIR(target.st_mode) ? EISDIR : ENOTSUP, outputRemedy);
  }
  return target;
}

// The owner of a pipe in /tmp can put a link to any file in its place before it is opened.
void writeInto(const std::filesystem::path& stream, const struct stat& judged,
               const std::string& content) {
  const FileDescriptor target(::open(stream.c_str(), O_WRONLY | O_CLOEXEC | O_NOCTTY));
  struct stat opened = {};
  if (!target || ::fstat(target.get(), &opened) != 0) {
    throwUnwritten(stream, errno, outputRemedy);
  }
  if (opened.st_dev != judged.st_dev || opened.st_ino != judged.st_ino) {
    throw Error("cannot write " + printable(stream.string()) + ": it was replaced meanwhile",
                "specify a file in a directory that nobody else can write to");
  }
  if (!writeCompletely(target.get(), content)) {
    throwUnwritten(stream, errno, outputRemedy);
  }
}

}  // namespace

void syncNames(const std::filesystem::path& folder) {
  const FileDescriptor opened(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (opened) {
    ::fsync(opened.get());
  }
}

void createDurably(const std::filesystem::path& file, const std::string& content) {
  writeDraft(file, content, {makeReadable, [&](const std::string& draft) {
                               if (placeNew(draft, file)) {
                                 return true;
                               }
                               if (errno == EEXIST) {
                                 throw Error(printable(file.string()) + " exists already",
                                             "rename or remove it", ExitCode::badInput);
                               }
                               return false;
                             }});
}

void replaceDurably(const std::filesystem::path& file, const std::string& content,
                    const struct stat& original) {
  const auto prepare = [&](int draft) {
    // chown(2) clears set-user-ID bits, so the mode comes second.
    return ::fchown(draft, original.st_uid, original.st_gid) == 0 &&
           ::fchmod(draft, original.st_mode & 07777U) == 0;
  };
  writeDraft(file, content, {prepare, [&](const std::string& draft) {
                               return ::rename(draft.c_str(), file.c_str()) == 0;
                             }});
}

void writeOutputFile(const std::filesystem::path& file, const std::string& content) {
  if (const auto stream = findStream(file)) {
    writeInto(file, *stream, content);
    return;
  }
  writeDraft(file, content,
             {makeReadable,
              [&](const std::string& draft) { return ::rename(draft.c_str(), file.c_str()) == 0; },
              false, outputRemedy});
}

}  // namespace vfpass
