#include "vfpass/host/root.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <climits>

namespace vfpass::host {
namespace {

std::string targetOf(int directory, const char* name) {
  std::array<char, PATH_MAX> target{};
  const ssize_t length = ::readlinkat(directory, name, target.data(), target.size());
  return length <= 0 ? std::string{} : std::string(target.data(), static_cast<std::size_t>(length));
}

}  // namespace

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
