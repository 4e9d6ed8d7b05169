#include "holders/threads.hpp"

#include <fcntl.h>
#include <linux/kcmp.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <set>
#include <string_view>

#include "sysfs/directory_reading.hpp"
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

}  // namespace vfpass::host
