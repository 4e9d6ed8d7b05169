#include "netlink/namespace_file.hpp"

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

}  // namespace vfpass::host
