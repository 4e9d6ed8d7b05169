#include "vfpass/install/hook_files.hpp"

#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <limits>
#include <optional>

#include "vfpass/base/bounded_read.hpp"
#include "vfpass/base/file_descriptor.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/error.hpp"

namespace vfpass::install {
namespace {

namespace fs = std::filesystem;

std::string firstLine(const fs::path& file) {
  constexpr std::size_t longest = 64;  // a pid or a task's name
  try {
    const std::string text = readBoundedFile(file, longest);
    return std::string(trim(text.substr(0, text.find('\n'))));
  } catch (const ReadRefused&) {
    return {};
  }
}

std::optional<pid_t> pidIn(const fs::path& file) {
  const auto number = parseNumber(firstLine(file));
  if (!number || *number == 0 || *number > std::numeric_limits<pid_t>::max()) {
    return std::nullopt;
  }
  return static_cast<pid_t>(*number);
}

// The pidfd is opened before the name is checked, so that the signal cannot reach another process
// that reuses the pid.
bool reload(const std::string& daemon, pid_t pid, const fs::path& procDirectory) {
  const FileDescriptor process(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  if (!process || firstLine(procDirectory / std::to_string(pid) / "comm") != daemon) {
    return false;
  }
  if (::syscall(SYS_pidfd_send_signal, process.get(), SIGHUP, nullptr, 0) != 0) {
    throw Error(
        "cannot reload " + daemon + " (pid " + std::to_string(pid) + "): " + errnoText(errno),
        "run `systemctl reload " + daemon + "`; it does not call the hook before that");
  }
  return true;
}

}  // namespace

std::vector<std::string> reloadLibvirt(const fs::path& runDirectory, const fs::path& procDirectory,
                                       std::vector<std::string>* reloaded) {
  std::vector<std::string> actions;
  for (const std::string daemon : {"virtqemud", "libvirtd"}) {
    const auto pid = pidIn(runDirectory / (daemon + ".pid"));
    if (pid && reload(daemon, *pid, procDirectory)) {
      actions.push_back("reloaded " + daemon + " (pid " + std::to_string(*pid) +
                        "), so that it looks for hooks again");
      if (reloaded != nullptr) {
        reloaded->push_back(daemon);
      }
    }
  }
  if (actions.empty()) {
    actions.emplace_back("no libvirt daemon is running; it finds the hook when it starts");
  }
  return actions;
}

}  // namespace vfpass::install
