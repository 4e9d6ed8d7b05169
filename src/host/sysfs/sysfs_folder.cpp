#include "vfpass/host/sysfs_folder.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <array>

#include "sysfs/directory_reading.hpp"
#include "vfpass/base/text.hpp"

namespace vfpass::host {

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

}  // namespace vfpass::host
