#include "vfpass/host/root.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>

#include "sysfs/directory_reading.hpp"
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

}  // namespace vfpass::host
