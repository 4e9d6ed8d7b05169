#include "kernel_write.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "guarded_child.hpp"
#include "vfpass/base/text.hpp"

namespace vfpass::host {
namespace {

std::string remedyFor(int error) {
  switch (error) {
    case EACCES:
    case EPERM:
      return "Run as root, with a writable /sys (not in a container).";
    case EROFS:
      return "/sys is mounted read-only here; run on the host itself.";
    default:
      return "The kernel log (dmesg) may say more.";
  }
}

[[noreturn]] void throwRefused(const std::string& path, std::string_view text,
                               const std::string& object, int error) {
  throw WriteError(object + ": writing \"" + std::string(trim(text)) + "\" to /" + path +
                       " failed: " + errnoText(error),
                   remedyFor(error), error);
}

[[noreturn]] void throwLate(const std::string& path, const std::string& object,
                            std::chrono::milliseconds deadline) {
  throw TimeoutError(
      object + ": the write to /" + path + " did not return within " + durationText(deadline) +
          "; something still holds the device",
      "Find the holder (a running VM, a process with its files open, a bond or bridge), let it "
      "go, then run `vfpass recover`. The kernel goes on with the write once it is free.");
}

}  // namespace

std::string durationText(std::chrono::milliseconds duration) {
  const auto count = duration.count();
  if (count < 1000) {
    return std::to_string(count) + " ms";
  }
  const auto tenths = count % 1000 / 100;
  return std::to_string(count / 1000) + (tenths == 0 ? "" : "." + std::to_string(tenths)) + " s";
}

void GuardedWriter::write(const std::string& path, std::string_view text, const std::string& object,
                          std::chrono::milliseconds deadline) {
  const FileDescriptor file = root_.open(path, O_WRONLY | O_NOCTTY | O_NOFOLLOW);
  if (!file) {
    throwRefused(path, text, object, errno);
  }
  const auto reply = runGuarded(deadline, file.get(), [&](int pipe) {
    // sysfs hands each write(2) to the attribute as a whole, so there is no partial one.
    const ssize_t count = ::write(file.get(), text.data(), text.size());
    const int error = count < 0 ? errno : 0;
    writeAll(pipe, &error, sizeof error);
  });
  if (!reply.finished) {
    throwLate(path, object, deadline);
  }
  int error = ECHILD;  // the child was killed before it could say anything
  if (reply.bytes.size() == sizeof error) {
    std::memcpy(&error, reply.bytes.data(), sizeof error);
  }
  if (error != 0) {
    throwRefused(path, text, object, error);
  }
}

}  // namespace vfpass::host
