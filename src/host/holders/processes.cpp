#include "holders/processes.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>

#include "sysfs/directory_reading.hpp"
#include "vfpass/base/text.hpp"

namespace vfpass::host {
namespace {

constexpr std::size_t longestName = 64;
constexpr std::size_t longestStatus = 4096;
constexpr std::size_t listLimit = 65536;  // of Root::list
// The kernel's PROC_PID_INIT_INO. In any other PID namespace only some processes are visible.
constexpr std::string_view firstPidNamespace = "pid:[4026531836]";

// Ignores devices that many processes have open and that belong to no function.
bool isOfInterest(std::string_view target) {
  constexpr std::array<std::string_view, 9> common{"/dev/null",    "/dev/zero",    "/dev/full",
                                                   "/dev/random",  "/dev/urandom", "/dev/tty",
                                                   "/dev/console", "/dev/ptmx",    "/dev/kvm"};
  constexpr std::array<std::string_view, 3> directories{"/dev/pts/", "/dev/shm/", "/dev/net/"};
  if (target.starts_with("net:[")) {
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

// Adds the number of a device file. AT_STATX_DONT_SYNC: a file on a dead server would hang.
void addDevice(int directory, OpenFile& file) {
  struct statx status {};
  if (::statx(directory, file.descriptor.c_str(), AT_STATX_DONT_SYNC | AT_NO_AUTOMOUNT, STATX_TYPE,
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

// The link of a namespace that was opened through a mount (`/run/netns/blue`) contains the mount's
// path, and `/` once it is unmounted. The kind of namespace is only known when it is entered.
std::optional<std::string> namespaceTarget(int directory, const std::string& descriptor,
                                           dev_t fileSystem) {
  struct statx status {};
  const bool isNamespace =
      ::statx(directory, descriptor.c_str(), AT_STATX_DONT_SYNC | AT_NO_AUTOMOUNT,
              STATX_TYPE | STATX_INO, &status) == 0 &&
      makedev(status.stx_dev_major, status.stx_dev_minor) == fileSystem;
  return isNamespace ? std::optional("net:[" + std::to_string(status.stx_ino) + "]") : std::nullopt;
}

// The links in a captured tree lead out of the tree, so they are not followed there.
std::vector<OpenFile> readOpenFiles(FileDescriptor directory, bool live,
                                    std::optional<dev_t> fileSystem, bool& complete) {
  std::vector<OpenFile> files;
  const FileDescriptor again(::fcntl(directory.get(), F_DUPFD_CLOEXEC, 0));
  const auto names = listNames(std::move(directory), {}, nullptr);
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

// The text after `key` in /proc/PID/status (proc(5)); empty if it is missing.
std::string_view valueAfter(std::string_view status, std::string_view key) {
  const auto start = status.find(key);
  return start == std::string_view::npos ? std::string_view() : status.substr(start + key.size());
}

// The second number after "Uid:" is the effective user ID.
bool runsAsRoot(std::string_view status) {
  const std::string_view users = valueAfter(status, "\nUid:\t");
  const auto second = users.find('\t');
  return second != std::string_view::npos && users.substr(second + 1).starts_with("0\t");
}

// Returns the reason why an existing process could not be read completely; empty on success.
std::string readProcess(const Root& root, std::optional<dev_t> fileSystem, Process& process) {
  const std::string directory = "proc/" + process.id;
  process.name = printable(root.readText(directory + "/comm", longestName).value_or("a process"));
  FileDescriptor files = root.open(directory + "/fd", O_RDONLY | O_DIRECTORY);
  if (!files) {
    return errno == EACCES || errno == EPERM ? errnoText(errno) : std::string{};
  }
  bool complete = true;
  process.files = readOpenFiles(std::move(files), root.isLive(), fileSystem, complete);
  process.networkNamespace =
      namespaceInode(root.linkTarget(directory + "/ns/net").value_or(""), "net");
  process.mountNamespace =
      namespaceInode(root.linkTarget(directory + "/ns/mnt").value_or(""), "mnt");
  // User and state only matter for guarded helpers, whose names begin with `vf` (task_name.hpp).
  if (process.name.starts_with("vf")) {
    const std::string status = root.readText(directory + "/status", longestStatus).value_or("");
    process.isRoot = runsAsRoot(status);
    process.isZombie = valueAfter(status, "\nState:\t").starts_with('Z');
  }
  return complete ? std::string{} : "too many files";
}

// Empty when all processes are visible.
std::string hiddenProcesses(const Root& root) {
  // Mounted with hidepid=2, /proc omits the processes of other users.
  if (!root.exists("proc/1")) {
    return "cannot see the processes of other users in /proc";
  }
  const auto ours = root.linkTarget("proc/self/ns/pid");
  if (ours && *ours != firstPidNamespace) {
    return "cannot see the processes outside this PID namespace";
  }
  return {};
}

// The first process that could not be read completely, and the number of others.
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
  // Keep processes out of snapshots.
  const Root unrecorded;
  const Root& root = given.isLive() ? unrecorded : given;
  ProcessList list;
  Unseen unseen;
  const auto fileSystem = root.isLive() ? namespaceFileSystem() : std::nullopt;
  const auto ids = root.list("proc");
  for (const std::string& id : ids) {
    if (!parseNumber(id)) {
      continue;
    }
    Process process;
    process.id = id;
    if (const std::string reason = readProcess(root, fileSystem, process); !reason.empty()) {
      unseen.add(process, reason);
    }
    list.processes.push_back(std::move(process));
  }
  list.blindSpot = unseen.text();
  if (list.blindSpot.empty()) {
    list.blindSpot =
        ids.size() < listLimit ? hiddenProcesses(root) : "too many processes to check them all";
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
