#include "holders/processes.hpp"

#include <fcntl.h>
#include <linux/kcmp.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <set>
#include <string_view>

#include "sysfs/file_reading.hpp"
#include "vfpass/base/text.hpp"

namespace vfpass::host {
namespace {

/// Descriptor tables, in an order of the kernel (kcmp(2)) that allows a binary search. Without it,
/// a process with thousands of tables would need millions of comparisons.
class DistinctTables {
 public:
  explicit DistinctTables(pid_t first) : owners_{first} {}

  /// False: a thread that was added before has the same table. A table that cannot be compared
  /// counts as new: the kernel has no kcmp(2), or the thread has ended.
  bool add(pid_t thread) {
    auto first = owners_.begin();
    auto last = owners_.end();
    while (first != last) {
      const auto middle = first + (last - first) / 2;
      switch (::syscall(SYS_kcmp, *middle, thread, KCMP_FILES, 0, 0)) {
        case 0:
          return false;
        case 1:
          first = middle + 1;
          break;
        case 2:
          last = middle;
          break;
        default:
          return true;
      }
    }
    owners_.insert(first, thread);
    return true;
  }

 private:
  std::vector<pid_t> owners_;
};

// The kernel counts threads in the number of links to `task` (proc_task_getattr).
bool isSingle(int tasks) {
  constexpr nlink_t linksOfOne = 3;
  struct stat status {};
  return ::fstat(tasks, &status) == 0 && status.st_nlink == linksOfOne;
}

Namespaces namespacesAt(int directory, const std::string& prefix) {
  return {namespaceInode(readLinkAt(directory, prefix + "ns/net").value_or(""), "net"),
          namespaceInode(readLinkAt(directory, prefix + "ns/mnt").value_or(""), "mnt")};
}

}  // namespace

Namespaces readNamespaces(const Root& root, const std::string& directory) {
  const std::string links = "proc/" + directory + "/ns/";
  return {namespaceInode(root.linkTarget(links + "net").value_or(""), "net"),
          namespaceInode(root.linkTarget(links + "mnt").value_or(""), "mnt")};
}

OwnOfThreads readThreads(const Root& root, const std::string& process, const Namespaces& main) {
  OwnOfThreads own;
  const std::string directory = process + "/task";
  FileDescriptor tasks = root.open("proc/" + directory, O_RDONLY | O_DIRECTORY);
  const auto id = parseNumber(process);
  if (!tasks || !id || isSingle(tasks.get())) {
    return own;
  }
  DistinctTables tables(static_cast<pid_t>(*id));
  std::set<Namespaces> known{main, Namespaces{}};
  const FileDescriptor again(::fcntl(tasks.get(), F_DUPFD_CLOEXEC, 0));
  visitNames(std::move(tasks), [&](const char* name) {
    const auto thread = parseNumber(name);
    if (!thread || *thread == *id) {
      return true;
    }
    if (tables.add(static_cast<pid_t>(*thread))) {
      own.tables.emplace_back(name);
    }
    const Namespaces namespaces = namespacesAt(again.get(), std::string(name) + "/");
    if (known.insert(namespaces).second) {
      own.namespaces.push_back({directory + "/" + name, namespaces});
    }
    return true;
  });
  return own;
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

namespace {

constexpr std::size_t longestComm = 64;
constexpr std::size_t firstLimit = 256;  // descriptors of a table in the first round
// The kernel's PROC_PID_INIT_INO. In any other PID namespace only some processes are visible.
constexpr std::string_view firstPidNamespace = "pid:[4026531836]";

void readIdentity(const Root& root, Process& process) {
  const std::string directory = "proc/" + process.id;
  process.name = printable(root.readText(directory + "/comm", longestComm).value_or("a process"));
  const Namespaces main = readNamespaces(root, process.id);
  process.networkNamespace = main.network;
  process.mountNamespace = main.mount;
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

// The first processes that could not be read completely, and the number of others.
class Unseen {
 public:
  void add(const Process& process, const std::string& reason) {
    constexpr std::size_t limit = 4;
    if (count_++ < limit) {
      named_.push_back(describe(process));
      reason_ = reason;
    }
  }
  [[nodiscard]] std::string text() const {
    if (count_ == 0) {
      return {};
    }
    const std::size_t others = count_ - named_.size();
    return "cannot see what " + join(named_, ", ") +
           (others == 0 ? "" : " and " + std::to_string(others) + " more") +
           (count_ == 1 ? " has" : " have") + " open: " + reason_;
  }

 private:
  std::vector<std::string> named_;
  std::string reason_;
  std::size_t count_ = 0;
};

std::vector<std::uint64_t> processIds(const Root& root) {
  std::vector<std::uint64_t> ids;
  visitNames(root.open("proc", O_RDONLY | O_DIRECTORY), [&](const char* name) {
    if (const auto id = parseNumber(name)) {
      ids.push_back(*id);
    }
    return true;
  });
  std::ranges::sort(ids);
  return ids;
}

/// Reads the descriptor tables of all processes in rounds, each of which continues with a larger
/// limit, because any user can run processes with millions of descriptors: these must not delay the
/// others, and only they are left over when the time has passed.
class Scan {
 public:
  explicit Scan(const Root& root) : root_(root), kind_(OpenFiles::readKind(root.isLive())) {}

  void add(const std::string& id);
  void readLargeTables(std::chrono::milliseconds timeout);
  ProcessList take();

 private:
  // A process and those of its tables that have not been read completely.
  struct Unfinished {
    std::size_t process = 0;
    OpenFiles files;
    std::vector<std::string> tables;
  };

  void read(Unfinished& work, const ReadLimit& limit);

  const Root& root_;
  OpenFiles::Kind kind_;
  ProcessList list_;
  Unseen unseen_;
  std::vector<Unfinished> backlog_;
};

void Scan::add(const std::string& id) {
  Process process;
  process.id = id;
  readIdentity(root_, process);
  OwnOfThreads own = readThreads(root_, id, {process.networkNamespace, process.mountNamespace});
  process.threads = std::move(own.namespaces);
  list_.processes.push_back(std::move(process));
  Unfinished work{list_.processes.size() - 1, OpenFiles(kind_), {"fd"}};
  for (const std::string& thread : own.tables) {
    work.tables.push_back("task/" + thread + "/fd");
  }
  read(work, {.descriptors = firstLimit});
  if (!work.tables.empty()) {
    backlog_.push_back(std::move(work));
  }
}

void Scan::read(Unfinished& work, const ReadLimit& limit) {
  Process& process = list_.processes[work.process];
  int error = 0;
  std::erase_if(work.tables, [&](const std::string& name) {
    if (error != 0) {
      return true;  // the process is reported, and its other tables are as inaccessible
    }
    FileDescriptor table = root_.open("proc/" + process.id + "/" + name, O_RDONLY | O_DIRECTORY);
    if (!table) {
      error = errno == EACCES || errno == EPERM ? errno : error;
      return true;
    }
    const auto result = work.files.read(std::move(table), name, limit);
    error = result == OpenFiles::Result::forbidden ? EACCES : error;
    return result != OpenFiles::Result::limited;
  });
  process.files = work.files.files();
  if (error != 0) {
    unseen_.add(process, errnoText(error));
  }
}

void Scan::readLargeTables(std::chrono::milliseconds timeout) {
  constexpr std::size_t growth = 16;
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  std::size_t limit = firstLimit * growth;
  while (!backlog_.empty() && std::chrono::steady_clock::now() < deadline) {
    std::erase_if(backlog_, [&](Unfinished& work) {
      read(work, {limit, deadline});
      return work.tables.empty();
    });
    limit *= growth;
  }
}

ProcessList Scan::take() {
  list_.blindSpot = unseen_.text();
  if (list_.blindSpot.empty()) {
    list_.blindSpot = hiddenProcesses(root_);
  }
  Unseen large;
  for (const Unfinished& work : backlog_) {
    large.add(list_.processes[work.process], "too many descriptors to read them all in time");
  }
  list_.unread = large.text();
  return std::move(list_);
}

}  // namespace

ProcessList readProcesses(const Root& given, std::chrono::milliseconds timeout) {
  // Keep processes out of snapshots.
  const Root unrecorded;
  const Root& root = given.isLive() ? unrecorded : given;
  Scan scan(root);
  for (const std::uint64_t id : processIds(root)) {
    scan.add(std::to_string(id));
  }
  scan.readLargeTables(timeout);
  return scan.take();
}

std::string describe(const Process& process) { return process.name + " (pid " + process.id + ")"; }

bool hasOpen(const Process& process, const std::vector<DeviceFile>& files) {
  return std::ranges::any_of(process.files, [&](const OpenFile& open) {
    return std::ranges::any_of(files, [&](const DeviceFile& file) { return isSame(open, file); });
  });
}

}  // namespace vfpass::host
