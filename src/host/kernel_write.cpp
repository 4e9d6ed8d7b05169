#include "kernel_write.hpp"

#include <fcntl.h>

#include <cerrno>

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

[[noreturn]] void throwLate(const std::string& call, const std::string& path,
                            const std::string& object, std::chrono::milliseconds deadline) {
  throw TimeoutError(
      object + ": " + call + " /" + path + " did not return within " + durationText(deadline) +
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
  const HelperReply reply = helper_.write(file.get(), text, deadline);
  if (!reply.finished) {
    throwLate("the write to", path, object, deadline);
  }
  if (reply.error != 0) {
    throwRefused(path, text, object, reply.error);
  }
}

std::string GuardedWriter::read(const std::string& path, const std::string& object,
                                std::chrono::milliseconds deadline) {
  const FileDescriptor file = root_.open(path, O_RDONLY | O_NOCTTY | O_NOFOLLOW);
  const HelperReply reply =
      file ? helper_.read(file.get(), deadline) : HelperReply{true, errno, {}};
  if (!reply.finished) {
    throwLate("the read of", path, object, deadline);
  }
  if (reply.error != 0) {
    throw Error(object + ": reading /" + path + " failed: " + errnoText(reply.error),
                remedyFor(reply.error));
  }
  return reply.bytes;
}

}  // namespace vfpass::host
