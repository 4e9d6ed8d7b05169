#include "vfpass/capture/captured_tree.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <iterator>
#include <memory>
#include <system_error>

#include "vfpass/base/scope_guard.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/doctor/doctor.hpp"
#include "vfpass/error.hpp"

namespace vfpass::capture {
namespace {

using Kind = host::RecordedEntry::Kind;

bool isKept(const std::string& path) {
  return !path.starts_with("proc/") || path == "proc/cpuinfo" || path == "proc/cmdline" ||
         path.starts_with("proc/sys/");
}

// All other files were written by people and may contain private data. Files below vfpass/ are
// already reduced where they are created.
bool isKernelFile(const std::string& path) {
  return path.starts_with("sys/") || path.starts_with("proc/sys/") || path.starts_with("vfpass/");
}

std::string firstProcessor(const std::string& text) {
  const auto end = text.find("\n\n");
  return end == std::string::npos ? text : text.substr(0, end + 1);
}

}  // namespace

CapturedTree keptOf(const host::Recording& recording) {
  CapturedTree tree;
  for (const auto& [path, entry] : recording.entries()) {
    if (!isKept(path)) {
      continue;
    }
    host::RecordedEntry kept = entry;
    if (path == "proc/cpuinfo") {
      kept.content = firstProcessor(kept.content);
    } else if (kept.kind == Kind::file && !isKernelFile(path)) {
      kept.content = doctor::knownSettings(path, kept.content);
    }
    // A file without any setting that doctor looks for is left out, so that not even its name is
    // recorded. For some files their mere existence matters.
    if (!kept.content.empty() || entry.content.empty() ||
        path.find("opensm") != std::string::npos || path.ends_with("/openibd.service")) {
      tree.emplace(path, kept);
    }
  }
  tree.erase("proc");
  return tree;
}

namespace {

namespace fs = std::filesystem;

constexpr int directoryFlags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;

[[noreturn]] void fail(const fs::path& path, const std::string& reason) {
  throw Error("cannot write " + printable(path.native()) + ": " + reason,
              "check free space and permissions");
}

[[noreturn]] void refuse(const fs::path& folder, const std::string& reason,
                         const std::string& remedy) {
  throw Error(printable(folder.native()) + reason, remedy, ExitCode::badInput);
}

bool isEmpty(const FileDescriptor& folder) {
  const int copy = ::openat(folder.get(), ".", directoryFlags);
  const std::unique_ptr<DIR, int (*)(DIR*)> entries(copy < 0 ? nullptr : ::fdopendir(copy),
                                                    ::closedir);
  if (!entries) {
    return false;
  }
  int count = 0;
  while (::readdir(entries.get()) != nullptr) {
    ++count;
  }
  return count == 2;  // . and ..
}

void requireOwn(const FileDescriptor& opened, const fs::path& folder) {
  struct stat status = {};
  if (::fstat(opened.get(), &status) != 0) {
    fail(folder, errnoText(errno));
  }
  if (status.st_uid != ::geteuid()) {
    refuse(folder, " belongs to another user (id " + std::to_string(status.st_uid) + ")",
           "specify a new directory");
  }
  if ((status.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    refuse(folder, " is writable by other users",
           "specify a new directory, or run `chmod go-w " + shellArgument(folder.native()) + "`");
  }
}

void writeAll(const FileDescriptor& file, const std::string& content, const fs::path& path) {
  for (std::size_t done = 0; done < content.size();) {
    const ssize_t count = ::write(file.get(), content.data() + done, content.size() - done);
    if (count < 0 && errno != EINTR) {
      fail(path, errnoText(errno));
    }
    done += count < 0 ? 0 : static_cast<std::size_t>(count);
  }
}

}  // namespace

CapturedFolder::CapturedFolder(const fs::path& folder)
    : folder_(folder.has_filename() ? folder : folder.parent_path()) {
  std::error_code error;
  if (folder_.has_parent_path()) {
    fs::create_directories(folder_.parent_path(), error);
    if (error) {
      fail(folder_.parent_path(), error.message());
    }
  }
  created_ = ::mkdir(folder_.c_str(), 0755) == 0;
  if (!created_ && errno != EEXIST) {
    fail(folder_, errnoText(errno));
  }
  root_ = FileDescriptor(::open(folder_.c_str(), directoryFlags));
  if (!root_ && errno != ENOTDIR && errno != ELOOP) {
    fail(folder_, errnoText(errno));
  }
  if (!root_ || !isEmpty(root_)) {
    refuse(folder_, " exists and is not an empty directory", "specify a new directory");
  }
  requireOwn(root_, folder_);
}

FileDescriptor CapturedFolder::below(const FileDescriptor& parent, const fs::path& directory,
                                     const fs::path& path) const {
  const std::string name = directory.empty() ? "" : std::prev(directory.end())->native();
  // The first component of an absolute path is `/`, which openat() opens whatever the directory is.
  if (name.empty() || name == "." || name == ".." || name.starts_with('/')) {
    fail(folder_ / path, "path is outside the snapshot");
  }
  if (::mkdirat(parent.get(), name.c_str(), 0755) == 0) {
    made_.push_back({directory, true});
  } else if (errno != EEXIST) {
    fail(folder_ / path, errnoText(errno));
  }
  FileDescriptor opened(::openat(parent.get(), name.c_str(), directoryFlags));
  if (!opened) {
    fail(folder_ / path, errnoText(errno));
  }
  return opened;
}

FileDescriptor CapturedFolder::parentOf(const fs::path& path) const {
  FileDescriptor current(::openat(root_.get(), ".", directoryFlags));
  if (!current) {
    fail(folder_, errnoText(errno));
  }
  fs::path directory;
  for (const auto& name : path.parent_path()) {
    directory /= name;
    current = below(current, directory, path);
  }
  return current;
}

void CapturedFolder::write(const std::string& path, const host::RecordedEntry& entry) const {
  const fs::path relative = path;
  const std::string name = relative.filename();
  const FileDescriptor parent = parentOf(relative);
  if (entry.kind == Kind::directory) {
    static_cast<void>(below(parent, relative, relative));
    return;
  }
  if (entry.kind == Kind::link) {
    if (::symlinkat(entry.content.c_str(), parent.get(), name.c_str()) != 0) {
      fail(folder_ / relative, errnoText(errno));
    }
    made_.push_back({relative, false});
    return;
  }
  const FileDescriptor file(::openat(parent.get(), name.c_str(),
                                     O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644));
  if (!file) {
    fail(folder_ / relative, errnoText(errno));
  }
  made_.push_back({relative, false});
  writeAll(file, entry.content, folder_ / relative);
}

// By descriptors: the path may lead elsewhere by now. unlinkat() removes no directory that has
// something else in it.
void CapturedFolder::remove(const Made& made) const {
  FileDescriptor parent(::openat(root_.get(), ".", directoryFlags));
  for (const auto& name : made.path.parent_path()) {
    if (!parent) {
      return;
    }
    parent = FileDescriptor(::openat(parent.get(), name.c_str(), directoryFlags));
  }
  if (parent) {
    ::unlinkat(parent.get(), made.path.filename().c_str(), made.isDirectory ? AT_REMOVEDIR : 0);
  }
}

void CapturedFolder::clear() const {
  for (auto made = made_.rbegin(); made != made_.rend(); ++made) {
    remove(*made);
  }
  made_.clear();
  if (created_) {
    ::rmdir(folder_.c_str());
  }
}

void writeFolder(const CapturedTree& tree, const fs::path& folder) {
  const CapturedFolder target(folder);
  ScopeGuard discard([&] { target.clear(); });
  for (const auto& [path, entry] : tree) {
    target.write(path, entry);
  }
  discard.disarm();
}

}  // namespace vfpass::capture
