#include "helper/call_mark.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cerrno>

#include "helper/task_name.hpp"
#include "vfpass/base/file_descriptor.hpp"

namespace vfpass::host {
namespace {

// Since Linux 6.3; linux/memfd.h of Debian 12 lacks it. Without it the call fails with EACCES where
// the sysctl vm.memfd_noexec is 2.
constexpr unsigned noExecution = 8U;

// A guarded child opens its mark when it has at most three other descriptors. A process of another
// user may have the name of a helper and any number of descriptors, which must cost nothing.
constexpr int searchedDescriptors = 8;

int createMark(const char* name) {
  const int file = ::memfd_create(name, MFD_CLOEXEC | noExecution);
  return file < 0 && errno == EINVAL ? ::memfd_create(name, MFD_CLOEXEC) : file;
}

// The file system of all anonymous files of the kernel, which nobody can mount (shm_mnt).
std::optional<dev_t> fileSystemOfMarks() {
  const FileDescriptor sample(createMark(idleTaskName));
  struct stat status {};
  return sample && ::fstat(sample.get(), &status) == 0 ? std::optional(status.st_dev)
                                                       : std::nullopt;
}

// The owner is the user who created the file; root of another user namespace has another ID here.
bool isMark(const Root& root, const std::string& link, dev_t fileSystem) {
  const FileDescriptor file = root.open(link, O_PATH);
  struct statx status {};
  return file &&
         ::statx(file.get(), "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_UID, &status) == 0 &&
         makedev(status.stx_dev_major, status.stx_dev_minor) == fileSystem &&
         (status.stx_uid == 0 || status.stx_uid == ::geteuid());
}

}  // namespace

CallMark::CallMark(const char* name) {
  ::prctl(PR_SET_NAME, name);
  file_ = createMark(name);
  error_ = file_ < 0 ? errno : 0;
}

CallMark::~CallMark() {
  if (file_ >= 0) {
    ::close(file_);
  }
  ::prctl(PR_SET_NAME, idleTaskName);
}

std::optional<PciAddress> markedDevice(const Root& root, const std::string& process,
                                       std::string_view name) {
  const auto device = deviceInTaskName(name);
  const auto fileSystem = device && root.isLive() ? fileSystemOfMarks() : std::nullopt;
  if (!device || (root.isLive() && !fileSystem)) {
    return std::nullopt;
  }
  const std::string target = "/memfd:" + std::string(name) + " (deleted)";
  for (int descriptor = 0; descriptor < searchedDescriptors; ++descriptor) {
    const std::string link = "proc/" + process + "/fd/" + std::to_string(descriptor);
    // A captured tree has the text of links but not the files.
    if (root.linkTarget(link) == target && (!fileSystem || isMark(root, link, *fileSystem))) {
      return device;
    }
  }
  return std::nullopt;
}

}  // namespace vfpass::host
