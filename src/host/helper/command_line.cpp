#include "vfpass/host/command_line.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>

#include "helper/guarded_child.hpp"

namespace vfpass::host {
namespace {

constexpr std::size_t longest = std::size_t{64} << 10U;
constexpr std::chrono::milliseconds deadline{1000};

}  // namespace

std::string readCommandLine(const Root& root, const std::string& process) {
  const std::string path = "proc/" + process + "/cmdline";
  if (!root.isLive()) {
    return root.readText(path, longest).value_or("");
  }
  const FileDescriptor file = root.open(path, O_RDONLY | O_CLOEXEC);
  if (!file) {
    return "";
  }
  const auto copy = [&file](int pipe) {
    std::array<char, 4096> buffer{};
    std::size_t left = longest;
    ssize_t length = 0;
    while (left > 0 &&
           (length = ::read(file.get(), buffer.data(), std::min(left, buffer.size()))) > 0) {
      writeAll(pipe, buffer.data(), static_cast<std::size_t>(length));
      left -= static_cast<std::size_t>(length);
    }
  };
  const GuardedReply reply = runGuarded(deadline, file.get(), copy);
  return reply.finished ? reply.bytes : "";
}

}  // namespace vfpass::host
