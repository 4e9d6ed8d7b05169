#include "vfpass/host/root.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>

#include "sysfs/file_reading.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/error.hpp"

namespace vfpass::host {
namespace {

bool sameDirectory(int descriptor, const char* path) {
  struct stat one {};
  struct stat other {};
  return ::fstat(descriptor, &one) == 0 && ::stat(path, &other) == 0 &&
         one.st_dev == other.st_dev && one.st_ino == other.st_ino;
}

std::string targetOf(int directory, const char* name) {
  std::array<char, PATH_MAX> target{};
  const ssize_t length = ::readlinkat(directory, name, target.data(), target.size());
  return length <= 0 ? std::string{} : std::string(target.data(), static_cast<std::size_t>(length));
}

}  // namespace

Root::Root(const std::filesystem::path& path)
    : directory_(::open(path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC)) {
  if (!directory_) {
    throw Error("cannot open the system root " + printable(path.native()) + ": " + errnoText(errno),
                "name a directory that `vfpass snapshot` created", ExitCode::badInput);
  }
  live_ = sameDirectory(directory_.get(), "/");
}

FileDescriptor Root::open(const std::string& path, int flags) const {
  return FileDescriptor(openBelow(directory_.get(), path, flags | O_CLOEXEC,
                                  live_ ? Containment::none : Containment::asRoot));
}

std::optional<std::string> Root::readText(const std::string& path, std::size_t limit) const {
  const auto text = readWhole(open(path, textFlags), limit, recording_);
  return text ? std::optional(std::string(trim(*text))) : std::nullopt;
}

std::optional<std::uint64_t> Root::readNumber(const std::string& path) const {
  return numberIn(readText(path));
}

std::vector<std::string> Root::list(const std::string& path, std::string_view prefix) const {
  return listNames(open(path, O_RDONLY | O_DIRECTORY), prefix, recording_);
}

std::optional<std::string> Root::linkTarget(const std::string& path) const {
  if (live_ && recording_ == nullptr) {
    return readLinkAt(directory_.get(), path);
  }
  return readLink(open(path, O_PATH | O_NOFOLLOW), recording_);
}

std::optional<std::string> Root::linkName(const std::string& path) const {
  return lastComponent(linkTarget(path));
}

bool Root::exists(const std::string& path) const {
  const FileDescriptor found = open(path, O_PATH | O_NOFOLLOW);
  if (found && recording_ != nullptr) {
    recording_->noteFound(found.get());
  }
  return static_cast<bool>(found);
}

Folder::Folder(const Root& root, const std::string& path)
    : directory_(root.open(path, O_PATH | O_DIRECTORY)),
      live_(root.isLive()),
      recording_(root.recording()) {}

Folder::Folder(const Folder& parent, const std::string& name)
    : directory_(parent.open(name, O_PATH | O_DIRECTORY)),
      live_(parent.live_),
      recording_(parent.recording_) {}

FileDescriptor Folder::open(const std::string& name, int flags) const {
  return FileDescriptor(openBelow(directory_.get(), name, flags | O_CLOEXEC,
                                  live_ ? Containment::none : Containment::withoutLinks));
}

// One read suffices: sysfs fills the buffer with the whole attribute
// (Documentation/filesystems/sysfs.rst).
std::optional<std::string> Folder::readText(const std::string& name) const {
  const FileDescriptor file = open(name, textFlags);
  if (!file || !isRegular(file.get())) {
    return std::nullopt;
  }
  std::array<char, 4096> buffer;  // NOLINT: only the initialized part is used
  const ssize_t length = ::pread(file.get(), buffer.data(), buffer.size(), 0);
  if (length < 0) {
    return std::nullopt;
  }
  std::string text(buffer.data(), static_cast<std::size_t>(length));
  if (recording_ != nullptr) {
    recording_->noteBytes(file.get(), 0, text);
  }
  return text;
}

std::optional<std::uint64_t> Folder::readNumber(const std::string& name) const {
  return numberIn(readText(name));
}

std::string Folder::readBytes(const std::string& name, std::size_t offset,
                              std::size_t length) const {
  const FileDescriptor file = open(name, textFlags);
  if (!file || !isRegular(file.get())) {
    return {};
  }
  std::string bytes = host::readBytes(file.get(), offset, length);
  if (recording_ != nullptr) {
    recording_->noteBytes(file.get(), offset, bytes);
  }
  return bytes;
}

std::vector<std::string> Folder::list(const std::string& name, std::string_view prefix) const {
  return listNames(open(name, O_RDONLY | O_DIRECTORY), prefix, recording_);
}

// Takes one system call, while a path from the root takes three: a device has half a dozen links.
std::optional<std::string> Folder::linkTarget(const std::string& name) const {
  if (recording_ != nullptr || name.find('/') != std::string::npos) {
    return readLink(open(name, O_PATH | O_NOFOLLOW), recording_);
  }
  return readLinkAt(directory_.get(), name);
}

std::optional<std::string> Folder::linkName(const std::string& name) const {
  return lastComponent(linkTarget(name));
}

Recording::Recording(std::string root) : root_(std::move(root)) {
  if (!root_.ends_with('/')) {
    root_ += '/';
  }
}

// The kernel's path of an open file, in which all links are resolved.
std::string Recording::pathOf(int descriptor) const {
  const std::string path =
      targetOf(AT_FDCWD, ("/proc/self/fd/" + std::to_string(descriptor)).c_str());
  return path.starts_with(root_) ? path.substr(root_.size()) : std::string{};
}

RecordedEntry* Recording::enter(const std::string& path, RecordedEntry::Kind kind) {
  if (path.empty()) {
    return nullptr;
  }
  return &entries_.try_emplace(path, RecordedEntry{kind, {}}).first->second;
}

void Recording::noteBytes(int file, std::size_t offset, std::string_view bytes) {
  RecordedEntry* entry = enter(pathOf(file), RecordedEntry::Kind::file);
  if (entry == nullptr || bytes.empty()) {
    return;
  }
  if (entry->content.size() < offset + bytes.size()) {
    entry->content.resize(offset + bytes.size(), '\0');
  }
  entry->content.replace(offset, bytes.size(), bytes);
}

void Recording::noteLink(int link, std::string_view target) {
  if (RecordedEntry* entry = enter(pathOf(link), RecordedEntry::Kind::link)) {
    entry->content = target;
  }
}

void Recording::noteNames(int directory, const std::vector<std::string>& names) {
  const std::string path = pathOf(directory);
  enter(path, RecordedEntry::Kind::directory);
  for (const std::string& name : names) {
    struct stat status {};
    if (path.empty() || ::fstatat(directory, name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) {
      continue;
    }
    if (S_ISLNK(status.st_mode)) {
      enter(path + "/" + name, RecordedEntry::Kind::link)->content =
          targetOf(directory, name.c_str());
    } else if (S_ISDIR(status.st_mode)) {
      enter(path + "/" + name, RecordedEntry::Kind::directory);
    }
  }
}

void Recording::noteFound(int object) {
  struct stat status {};
  if (::fstat(object, &status) != 0) {
    return;
  }
  if (S_ISLNK(status.st_mode)) {
    noteLink(object, targetOf(object, ""));
  } else {
    enter(pathOf(object),
          S_ISDIR(status.st_mode) ? RecordedEntry::Kind::directory : RecordedEntry::Kind::file);
  }
}

void Recording::noteText(int directory, const std::string& name, const std::string& text) {
  const std::string path = pathOf(directory);
  if (!path.empty()) {
    enter(path + "/" + name, RecordedEntry::Kind::file)->content = text;
  }
}

}  // namespace vfpass::host
