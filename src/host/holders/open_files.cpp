#include "holders/processes.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <string_view>

#include "sysfs/file_reading.hpp"
#include "vfpass/base/text.hpp"

namespace vfpass::host {
namespace {

constexpr std::string_view networkPrefix = "net:[";
constexpr std::size_t longestNumber = 64;

// Devices that many processes have open and that belong to no function. The numbers are fixed
// (admin-guide/devices.txt of the kernel).
bool isCommon(dev_t number) {
  constexpr unsigned memory = 1;  // null, zero, full, random
  constexpr unsigned terminal = 4;
  constexpr unsigned alternateTerminal = 5;  // the console and the terminal of the process
  constexpr unsigned firstPts = 136;
  constexpr unsigned lastPts = 143;
  constexpr unsigned miscellaneous = 10;
  constexpr unsigned tun = 200;
  constexpr unsigned kvm = 232;
  const unsigned group = major(number);
  return group == memory || group == terminal || group == alternateTerminal ||
         (group >= firstPts && group <= lastPts) ||
         (group == miscellaneous && (minor(number) == tun || minor(number) == kvm));
}

// The same for a captured tree.
bool isOfInterest(std::string_view target) {
  constexpr std::array<std::string_view, 9> common{"/dev/null",    "/dev/zero",    "/dev/full",
                                                   "/dev/random",  "/dev/urandom", "/dev/tty",
                                                   "/dev/console", "/dev/ptmx",    "/dev/kvm"};
  constexpr std::array<std::string_view, 3> directories{"/dev/pts/", "/dev/shm/", "/dev/net/"};
  if (target.starts_with(networkPrefix)) {
    return true;
  }
  return target.starts_with("/dev/") && std::ranges::find(common, target) == common.end() &&
         std::ranges::none_of(directories, [&](auto each) { return target.starts_with(each); });
}

// libvirt removes a device node from the guest's /dev while QEMU may still have it open.
std::string withoutDeletedMark(std::string target) {
  constexpr std::string_view mark = " (deleted)";
  if (target.ends_with(mark)) {
    target.resize(target.size() - mark.size());
  }
  return target;
}

// The kernel lists `.` and `..` first and then the descriptors in order, each at its number plus 2
// (proc_readfd_common).
off_t positionOf(const char* descriptor) {
  return static_cast<off_t>(parseNumber(descriptor).value_or(0)) + 2;
}

}  // namespace

bool isSame(const OpenFile& open, const DeviceFile& file) {
  return open.device ? !open.isBlock && open.device == file.number : open.target == file.path;
}

OpenFiles::Kind OpenFiles::readKind(bool live) {
  struct stat status {};
  const bool known = live && ::stat("/proc/self/ns/net", &status) == 0;
  return {live, known ? std::optional(status.st_dev) : std::nullopt};
}

OpenFiles::Result OpenFiles::read(FileDescriptor table, const std::string& name,
                                  const ReadLimit& limit) {
  constexpr std::size_t checkInterval = 1024;
  // A duplicate would share the position.
  const FileDescriptor again(::openat(table.get(), ".", O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (const auto position = positions_.find(name); position != positions_.end()) {
    ::lseek(table.get(), position->second, SEEK_SET);
  }
  std::size_t count = 0;
  Result result = Result::complete;
  visitNames(std::move(table), [&](const char* descriptor) {
    const bool late =
        count % checkInterval == 0 && std::chrono::steady_clock::now() >= limit.deadline;
    if (late || count++ >= limit.descriptors) {
      result = Result::limited;
      positions_[name] = positionOf(descriptor);
    } else if (kind_.live) {
      result = addLive(again.get(), descriptor, name);
    } else {
      addCaptured(again.get(), descriptor, name);
    }
    return result == Result::complete;
  });
  return result;
}

// One statx(2) decides for nearly every descriptor. AT_STATX_DONT_SYNC: a file on a dead server
// would hang.
OpenFiles::Result OpenFiles::addLive(int table, const char* descriptor, const std::string& name) {
  struct statx status {};
  if (::statx(table, descriptor, AT_STATX_DONT_SYNC | AT_NO_AUTOMOUNT, STATX_TYPE | STATX_INO,
              &status) != 0) {
    // A file system in user space may refuse root (fuse(4), allow_other); it has no device nodes.
    const bool refused = errno == EACCES || errno == EPERM;
    return refused && !readLinkAt(table, descriptor) && errno != ENOENT ? Result::forbidden
                                                                        : Result::complete;
  }
  OpenFile file{name + "/" + descriptor, {}, std::nullopt, S_ISBLK(status.stx_mode)};
  if (file.isBlock || S_ISCHR(status.stx_mode)) {
    file.device = makedev(status.stx_rdev_major, status.stx_rdev_minor);
    addDevice(file, table, descriptor);
  } else if (kind_.namespaces &&
             makedev(status.stx_dev_major, status.stx_dev_minor) == *kind_.namespaces) {
    addNamespace(file, status.stx_ino, table, descriptor);
  }
  return Result::complete;
}

void OpenFiles::addDevice(const OpenFile& file, int table, const char* descriptor) {
  if ((!file.isBlock && isCommon(*file.device)) ||
      !devices_.emplace(file.isBlock, *file.device).second) {
    return;
  }
  files_.push_back(file);
  files_.back().target = withoutDeletedMark(readLinkAt(table, descriptor).value_or(""));
}

// The link of a namespace that was opened through a mount (`/run/netns/blue`) contains the mount's
// path, and `/` once it is unmounted. The kind of namespace is only known when it is entered.
void OpenFiles::addNamespace(OpenFile file, std::uint64_t inode, int table,
                             const char* descriptor) {
  if (!namespaces_.insert(inode).second) {
    return;
  }
  const auto target = readLinkAt(table, descriptor);
  if (target && (target->starts_with(networkPrefix) || target->starts_with('/'))) {
    file.target = "net:[" + std::to_string(inode) + "]";
    files_.push_back(std::move(file));
  }
}

void OpenFiles::addCaptured(int table, const char* descriptor, const std::string& name) {
  const auto target = readLinkAt(table, descriptor);
  if (target && isOfInterest(*target)) {
    files_.push_back({name + "/" + descriptor, withoutDeletedMark(*target), std::nullopt, false});
  }
}

std::optional<dev_t> parseDeviceNumber(const std::string& text) {
  const auto colon = text.find(':');
  if (colon == std::string::npos) {
    return std::nullopt;
  }
  const auto major = parseNumber(text.substr(0, colon));
  const auto minor = parseNumber(text.substr(colon + 1));
  if (!major || !minor || *major > UINT32_MAX || *minor > UINT32_MAX) {
    return std::nullopt;
  }
  return makedev(static_cast<unsigned>(*major), static_cast<unsigned>(*minor));
}

std::optional<dev_t> readDeviceNumber(const Root& root, const std::string& directory) {
  return parseDeviceNumber(root.readText(directory + "/dev", longestNumber).value_or(""));
}

}  // namespace vfpass::host
