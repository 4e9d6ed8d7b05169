#include "netlink/network_namespaces.hpp"

#include <fcntl.h>
#include <linux/nsfs.h>
#include <linux/openat2.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <map>

#include "holders/mount_table.hpp"
#include "holders/processes.hpp"
#include "vfpass/base/text.hpp"

namespace vfpass::host {
namespace {

constexpr ino_t initialUserNamespace = 0xEFFFFFFD;  // PROC_USER_INIT_INO

// `/proc/self/fd/7`, formatted without printf, which may allocate.
class DescriptorPath {
 public:
  explicit DescriptorPath(int descriptor) {
    char* end = text_.data() + std::strlen(text_.data());
    std::array<char, 12> digits{};
    std::size_t count = 0;
    do {
      digits[count++] = static_cast<char>('0' + descriptor % 10);
      descriptor /= 10;
    } while (descriptor > 0);
    while (count > 0) {
      *end++ = digits[--count];
    }
  }
  [[nodiscard]] const char* get() const { return text_.data(); }

 private:
  std::array<char, 32> text_{"/proc/self/fd/"};
};

// AT_STATX_DONT_SYNC: the file may be anything by now, also one on a file system that hangs.
bool isNamespace(int descriptor, std::uint64_t inode) {
  struct statx found {};
  struct stat sample {};
  return ::statx(descriptor, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_INO, &found) == 0 &&
         ::stat("/proc/self/ns/net", &sample) == 0 && found.stx_dev_major == major(sample.st_dev) &&
         found.stx_dev_minor == minor(sample.st_dev) && found.stx_ino == inode;
}

// `found` is open with O_PATH, or -1 with errno; it is closed.
int openFound(int found, std::uint64_t inode) {
  if (found < 0) {
    return -1;
  }
  int opened = -1;
  int error = ENOENT;
  if (isNamespace(found, inode)) {
    opened = ::open(DescriptorPath(found).get(), O_RDONLY | O_CLOEXEC);
    error = errno;
  }
  ::close(found);
  errno = error;
  return opened;
}

// RESOLVE_CACHED (Linux 5.12) fails with EAGAIN instead of asking a file system. The directories
// above a mount point are always cached, unless a file system wants to be asked each time.
int findMount(int root, const char* path, bool trusted) {
  open_how how{};
  how.flags = O_PATH | O_CLOEXEC;
  how.resolve = RESOLVE_CACHED;
  const auto found = static_cast<int>(::syscall(SYS_openat2, root, path, &how, sizeof how));
  if (found >= 0) {
    return found;
  }
  if (trusted) {
    return ::openat(root, path, O_PATH | O_CLOEXEC);
  }
  errno = errno == EINVAL || errno == ENOSYS ? EAGAIN : errno;
  return -1;
}

}  // namespace

int openNamespace(const char* file, std::uint64_t inode) {
  return openFound(::open(file, O_PATH | O_CLOEXEC), inode);
}

int openNamespace(const NamespaceMount& mount, std::uint64_t inode) {
  const int root = ::open(mount.root.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (root < 0) {
    return -1;
  }
  const char* path = mount.path.c_str();
  while (*path == '/') {
    ++path;
  }
  const int found = findMount(root, path, mount.trusted);
  const int error = errno;
  ::close(root);
  errno = error;
  return openFound(found, inode);
}

bool isOwnedByHost(int namespaceFile) {
  const int owner = ::ioctl(namespaceFile, NS_GET_USERNS);
  if (owner < 0) {
    return true;  // EPERM: a user namespace above our own
  }
  struct stat status {};
  const bool initial = ::fstat(owner, &status) == 0 && status.st_ino == initialUserNamespace;
  ::close(owner);
  return initial;
}

namespace {

constexpr std::size_t fileLimit = 4;  // of residents, and of openers
constexpr std::size_t longestNamespaceName = 64;

// The data collected about one namespace; each text is the first one found.
struct Traces {
  std::string name;                    // of `ip netns`
  std::string resident;                // a process in it
  std::string mount;                   // another mount point
  std::string opener;                  // a process that has it open
  std::vector<std::string> residents;  // files, in order of how safely they can be opened
  std::vector<std::string> openers;
  std::vector<NamespaceMount> mounts;
};

using TraceMap = std::map<std::uint64_t, Traces>;

void addFile(std::vector<std::string>& files, std::string file) {
  if (files.size() < fileLimit) {
    files.push_back(std::move(file));
  }
}

void keepFirst(std::string& text, std::string value) {
  if (text.empty()) {
    text = std::move(value);
  }
}

// `ip netns add blue` mounts the namespace at /run/netns/blue. /var/run is a link to /run.
std::string netnsName(std::string_view path) {
  constexpr std::string_view directory = "/run/netns/";
  const std::string_view name =
      path.starts_with(directory) ? path.substr(directory.size()) : std::string_view{};
  return name.find('/') == std::string_view::npos ? printable(name.substr(0, longestNamespaceName))
                                                  : std::string{};
}

void addMounts(const MountTable& mounts, TraceMap& found) {
  for (const MountedNamespace& mounted : mounts.networkNamespaces()) {
    Traces& traces = found[mounted.inode];
    // In a mount namespace of their own, users can use the name of any other namespace.
    keepFirst(traces.name, mounted.ours ? netnsName(mounted.mount.path) : std::string{});
    keepFirst(traces.mount, printable(mounted.mount.path.substr(0, 4 * longestNamespaceName)));
    traces.mounts.push_back(mounted.mount);
  }
}

void addProcess(const Process& process, TraceMap& found) {
  const auto addResident = [&](std::optional<std::uint64_t> inode, const std::string& directory) {
    if (inode) {
      Traces& traces = found[*inode];
      keepFirst(traces.resident, describe(process));
      addFile(traces.residents, "/proc/" + directory + "/ns/net");
    }
  };
  addResident(process.networkNamespace, process.id);
  for (const OwnNamespaces& thread : process.threads) {
    addResident(thread.namespaces.network, thread.directory);
  }
  for (const OpenFile& file : process.files) {
    if (const auto inode = namespaceInode(file.target, "net")) {
      Traces& traces = found[*inode];
      keepFirst(traces.opener, describe(process));
      addFile(traces.openers, "/proc/" + process.id + "/" + file.descriptor);
    }
  }
}

std::string describe(const Traces& traces) {
  if (!traces.name.empty()) {
    return "network namespace " + traces.name;
  }
  if (!traces.resident.empty()) {
    return "the network namespace of " + traces.resident;
  }
  if (!traces.mount.empty()) {
    return "the network namespace mounted at " + traces.mount;
  }
  return "a network namespace that " + traces.opener + " has open";
}

}  // namespace

std::vector<NetworkNamespace> findNetworkNamespaces(const std::vector<Process>& processes,
                                                    const MountTable& mounts,
                                                    std::uint64_t ourInode) {
  TraceMap found;
  addMounts(mounts, found);
  for (const Process& process : processes) {
    addProcess(process, found);
  }
  found.erase(ourInode);
  std::vector<NetworkNamespace> namespaces;
  namespaces.push_back({ourInode, true, "our own network namespace", {"/proc/self/ns/net"}});
  for (auto& [inode, traces] : found) {
    auto files = std::move(traces.residents);
    files.insert(files.end(), traces.openers.begin(), traces.openers.end());
    namespaces.push_back({inode, false, describe(traces), std::move(files), traces.mounts});
  }
  return namespaces;
}

}  // namespace vfpass::host
