#include "vfpass/libvirt/libvirt_hypervisor.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "vfpass/base/file_descriptor.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/error.hpp"

namespace vfpass::libvirt {

void syncDefinitions(const std::string& uri) {
  constexpr const char* directory = "/etc/libvirt/qemu";
  if (uri != "qemu:///system") {
    return;
  }
  const FileDescriptor opened(::open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!opened && errno == ENOENT) {
    return;  // a libvirt that was built for another place
  }
  // EINVAL: the file system does not support fsync on directories, and does not need it.
  if (!opened || (::fsync(opened.get()) != 0 && errno != EINVAL)) {
    throw Error(std::string("cannot sync directory ") + directory + ": " + errnoText(errno),
                "check the disk and the kernel log (dmesg)");
  }
}

}  // namespace vfpass::libvirt
