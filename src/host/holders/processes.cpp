#include "holders/processes.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>

#include "directory_reading.hpp"
#include "vfpass/base/text.hpp"

namespace vfpass::host {
namespace {

constexpr std::size_t longestName = 64;
constexpr std::size_t longestStatus = 4096;
constexpr std::size_t listLimit = 65536;  // of Root::list
// PROC_PID_INIT_INO of the kernel: whoever runs elsewhere sees only a part of the processes.
constexpr std::string_view firstPidNamespace = "pid:[4026531836]";

// Nobody's device: every second process has some of these open.
bool isOfInterest(std::string_view target) {
  constexpr std::array<std::string_view, 9> common{"/dev/null",    "/dev/zero",    "/dev/full",
                                                   "/dev/random",  "/dev/urandom", "/dev/tty",
                                                   "/dev/console", "/dev/ptmx",    "/dev/kvm"};
  constexpr std::array<std::string_view, 3> folders{"/dev/pts/", "/dev/shm/", "/dev/net/"};
  if (target.starts_with("net:[")) {
    return true;
  }
  return target.starts_with("/dev/") && std::ranges::find(common, target) == common.end() &&
         std::ranges::none_of(folders, [&](auto folder) { return target.starts_with(folder); });
}

// libvirt removes a device's node from its guest's /dev while QEMU may still have it open.
std::string withoutDeletedMark(std::string target) {
  constexpr std::string_view mark = " (deleted)";
  if (target.ends_with(mark)) {
    target.resize(target.size() - mark.size());
  }
  return target;
}

// Adds the number of a device file. AT_STATX_DONT_SYNC: one on a dead server would hang.
void addDevice(int folder, OpenFile& file) {
  struct statx status {};
  if (::statx(folder, file.descriptor.c_str(), AT_STATX_DONT_SYNC | AT_NO_AUTOMOUNT, STATX_TYPE,
              &status) == 0 &&
      (S_ISCHR(status.stx_mode) || S_ISBLK(status.stx_mode))) {
    file.device = makedev(status.stx_rdev_major, status.stx_rdev_minor);
    file.isBlock = S_ISBLK(status.stx_mode);
  }
}

// The file system of namespace files; nullopt in a captured tree.
std::optional<dev_t> namespaceFileSystem() {
  struct stat status {};
  return ::stat("/proc/self/ns/net", &status) == 0 ? std::optional(status.st_dev) : std::nullopt;
}

// A namespace that was opened by a mount (`/run/netns/blue`) shows the mount's path, and `/` once
// it is unmounted. Of which kind it is shows when it is entered.
std::optional<std::string> namespaceTarget(int folder, const std::string& descriptor,
                                           dev_t fileSystem) {
  struct statx status {};
  const bool isNamespace = ::statx(folder, descriptor.c_str(), AT_STATX_DONT_SYNC | AT_NO_AUTOMOUNT,
                                   STATX_TYPE | STATX_INO, &status) == 0 &&
                           makedev(status.stx_dev_major, status.stx_dev_minor) == fileSystem;
  return isNamespace ? std::optional("net:[" + std::to_string(status.stx_ino) + "]") : std::nullopt;
}

// In a captured tree the links lead out of it, so nothing is looked up by them.
std::vector<OpenFile> readOpenFiles(FileDescriptor folder, bool live, bool& complete) {
  const auto fileSystem = live ? namespaceFileSystem() : std::nullopt;
  std::vector<OpenFile> files;
  const FileDescriptor again(::fcntl(folder.get(), F_DUPFD_CLOEXEC, 0));
  const auto names = listNames(std::move(folder), {}, nullptr);
  complete = names.size() < listLimit;
  for (const std::string& name : names) {
    auto target = readLinkAt(again.get(), name);
    if (target && fileSystem && target->starts_with('/') && !target->starts_with("/dev/")) {
      target = namespaceTarget(again.get(), name, *fileSystem);
    }
    if (!target || !isOfInterest(*target)) {
      continue;
    }
    files.push_back({name, withoutDeletedMark(*target), std::nullopt, false});
    if (live && target->front() == '/') {
      addDevice(again.get(), files.back());
    }
  }
  return files;
}

// The second number behind "Uid:" is the effective user (proc(5)).
bool isOfRoot(const Root& root, const std::string& folder) {
  const std::string status = root.readText(folder + "/status", longestStatus).value_or("");
  constexpr std::string_view key = "Uid:\t";
  const auto start = status.find(key);
  if (start == std::string::npos) {
    return false;
  }
  const std::string_view rest = std::string_view(status).substr(start + key.size());
  const auto second = rest.find('\t');
  return second != std::string_view::npos && rest.substr(second + 1).starts_with("0\t");
}

// Empty, or why not all could be seen of a process that is still there.
std::string readProcess(const Root& root, Process& process) {
  const std::string folder = "proc/" + process.id;
  process.name = printable(root.readText(folder + "/comm", longestName).value_or("a process"));
  FileDescriptor files = root.open(folder + "/fd", O_RDONLY | O_DIRECTORY);
  if (!files) {
    return errno == EACCES || errno == EPERM ? errnoText(errno) : std::string{};
  }
  bool complete = true;
  process.files = readOpenFiles(std::move(files), root.isLive(), complete);
  process.networkNamespace =
      namespaceInode(root.linkTarget(folder + "/ns/net").value_or(""), "net");
  process.mountNamespace = namespaceInode(root.linkTarget(folder + "/ns/mnt").value_or(""), "mnt");
  // Only a helper of our own has a name that begins so (task_name.hpp).
  process.isRoot = process.name.starts_with("vf") && isOfRoot(root, folder);
  return complete ? std::string{} : "too many files";
}

// Empty when nothing hides processes from us.
std::string hiddenProcesses(const Root& root) {
  // Mounted with hidepid=2, /proc leaves out what belongs to others.
  if (!root.exists("proc/1")) {
    return "cannot see the processes of other users in /proc";
  }
  const auto ours = root.linkTarget("proc/self/ns/pid");
  if (ours && *ours != firstPidNamespace) {
    return "cannot see the processes outside this PID namespace";
  }
  return {};
}

// The first process of which not all could be seen, and how many more.
class Unseen {
 public:
  void add(const Process& process, const std::string& reason) {
    if (count_++ == 0) {
      first_ = describe(process);
      reason_ = reason;
    }
  }
  [[nodiscard]] std::string text() const {
    if (count_ == 0) {
      return {};
    }
    return "cannot see what " + first_ +
           (count_ == 1 ? " has" : " and " + std::to_string(count_ - 1) + " other processes have") +
           " open: " + reason_;
  }

 private:
  std::string first_;
  std::string reason_;
  std::size_t count_ = 0;
};

}  // namespace

ProcessList readProcesses(const Root& given) {
  // Whoever records what is read for a snapshot gets no processes.
  const Root unrecorded;
  const Root& root = given.isLive() ? unrecorded : given;
  ProcessList list;
  Unseen unseen;
  const auto ids = root.list("proc");
  for (const std::string& id : ids) {
    if (!parseNumber(id)) {
      continue;
    }
    Process process;
    process.id = id;
    if (const std::string reason = readProcess(root, process); !reason.empty()) {
      unseen.add(process, reason);
    }
    list.processes.push_back(std::move(process));
  }
  list.blindSpot = unseen.text();
  if (list.blindSpot.empty()) {
    list.blindSpot =
        ids.size() < listLimit ? hiddenProcesses(root) : "there are too many processes";
  }
  return list;
}

std::string describe(const Process& process) { return process.name + " (pid " + process.id + ")"; }

bool hasOpen(const Process& process, const std::vector<std::string>& files) {
  return std::ranges::any_of(process.files, [&](const OpenFile& file) {
    return std::ranges::find(files, file.target) != files.end();
  });
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

std::optional<std::uint64_t> namespaceInode(std::string_view link, std::string_view kind) {
  if (!link.starts_with(kind) || !link.substr(kind.size()).starts_with(":[") ||
      !link.ends_with("]")) {
    return std::nullopt;
  }
  link.remove_prefix(kind.size() + 2);
  link.remove_suffix(1);
  return parseNumber(link);
}

}  // namespace vfpass::host
