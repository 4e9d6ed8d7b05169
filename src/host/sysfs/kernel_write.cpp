#include "sysfs/kernel_write.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "helper/task_name.hpp"
#include "vfpass/base/caught.hpp"
#include "vfpass/base/deadline.hpp"
#include "vfpass/base/text.hpp"

namespace vfpass::host {
namespace {

// Files that configure VFs: their count, and MLNX_OFED's attribute files.
bool isSriovFile(const std::string& path) {
  return path.find("/sriov_") != std::string::npos || path.find("/sriov/") != std::string::npos;
}

[[noreturn]] void throwRefused(const std::string& path, std::string_view text,
                               const PciAddress& device, int error) {
  throw WriteError(toString(device) + ": cannot write \"" + std::string(trim(text)) + "\" to /" +
                       path + ": " + errnoText(error),
                   writeRemedy(path, error, ::geteuid() == 0), error);
}

// Creating and removing VFs takes the driver's own time, also if nothing holds one.
[[noreturn]] void throwLate(const std::string& call, const std::string& path,
                            const PciAddress& device, std::chrono::milliseconds deadline) {
  const std::string late = toString(device) + ": " + call + " /" + path +
                           " did not return within " + durationText(deadline);
  if (path.ends_with("/sriov_numvfs")) {
    throw TimeoutError(late,
                       "find the cause in the kernel log (`dmesg | grep " + toString(device) +
                           "`); if a VM or process uses a VF of this PF, stop it; run `vfpass "
                           "recover` once the kernel has completed the write");
  }
  throw TimeoutError(
      late + "; something still holds the device",
      "stop the holder (a running VM, a process that has its files open, a bond or bridge), then "
      "run `vfpass recover`; the kernel completes the write once the device is free");
}

void requireWritten(const HelperReply& reply, const DeviceWrite& write,
                    std::chrono::milliseconds deadline) {
  if (!reply.finished) {
    throwLate("the write to", write.path, write.device, deadline);
  }
  if (reply.error != 0) {
    throwRefused(write.path, write.text, write.device, reply.error);
  }
}

FileDescriptor openForWriting(const Root& root, const DeviceWrite& write) {
  FileDescriptor file = root.open(write.path, O_WRONLY | O_NOCTTY | O_NOFOLLOW);
  if (!file) {
    throwRefused(write.path, write.text, write.device, errno);
  }
  return file;
}

}  // namespace

std::string writeRemedy(const std::string& path, int error, bool asRoot) {
  // The file's mode permits root to write, so EPERM comes from the driver.
  if (error == EPERM && asRoot && isSriovFile(path)) {
    return eswitchRemedy;
  }
  switch (error) {
    case EACCES:
    case EPERM:
      return "run as root, with a writable /sys (not in a container)";
    case EROFS:
      return "run on the host itself: /sys is mounted read-only here";
    default:
      return "check the kernel log (dmesg)";
  }
}

std::string durationText(std::chrono::milliseconds duration) {
  const auto count = duration.count();
  if (count < 1000) {
    return std::to_string(count) + " ms";
  }
  const auto tenths = count % 1000 / 100;
  return std::to_string(count / 1000) + (tenths == 0 ? "" : "." + std::to_string(tenths)) + " s";
}

void GuardedWriter::write(const std::string& path, std::string_view text, const PciAddress& device,
                          std::chrono::milliseconds deadline) {
  const DeviceWrite write{device, path, std::string(text)};
  const FileDescriptor file = openForWriting(root_, write);
  requireWritten(helper_.write(file.get(), text, taskName(device), deadline), write, deadline);
}

std::vector<std::exception_ptr> GuardedWriter::writeTogether(const std::vector<DeviceWrite>& writes,
                                                             std::chrono::milliseconds timeout) {
  const Deadline deadline(timeout);
  std::vector<GuardedHelper> helpers(writes.size());
  std::vector<std::exception_ptr> failures(writes.size());
  for (std::size_t i = 0; i < writes.size(); ++i) {
    failures[i] = caught([&] {
      const FileDescriptor file = openForWriting(root_, writes[i]);
      helpers[i].beginWrite(file.get(), writes[i].text, taskName(writes[i].device));
    });
  }
  for (std::size_t i = 0; i < writes.size(); ++i) {
    if (!failures[i]) {
      const std::chrono::milliseconds left = deadline.left();
      failures[i] =
          caught([&] { requireWritten(helpers[i].finishWrite(left), writes[i], timeout); });
    }
  }
  return failures;
}

std::string GuardedWriter::read(const std::string& path, const PciAddress& device,
                                std::chrono::milliseconds deadline) {
  const FileDescriptor file = root_.open(path, O_RDONLY | O_NOCTTY | O_NOFOLLOW);
  const HelperReply reply =
      file ? helper_.read(file.get(), taskName(device), deadline) : HelperReply{true, errno, {}};
  if (!reply.finished) {
    throwLate("the read of", path, device, deadline);
  }
  if (reply.error != 0) {
    throw Error(toString(device) + ": cannot read /" + path + ": " + errnoText(reply.error),
                writeRemedy(path, reply.error, ::geteuid() == 0));
  }
  return reply.bytes;
}

}  // namespace vfpass::host
