#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "check.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/doctor/doctor.hpp"

namespace vfpass::doctor {
namespace {

constexpr const char* hooksFolder = "etc/libvirt/hooks";
constexpr std::size_t startField = 19;  // starttime in proc(5), counted from the name

// In clock ticks since boot. The process name before it can contain blanks and parentheses.
std::optional<std::uint64_t> startTicks(const host::Root& root, const std::string& process) {
  const std::string text = root.readText("proc/" + process + "/stat").value_or("");
  auto at = text.rfind(')');
  for (std::size_t field = 0; field <= startField && at != std::string::npos; ++field) {
    at = text.find(' ', at + 1);
  }
  if (at == std::string::npos) {
    return std::nullopt;
  }
  return parseNumber(std::string_view(text).substr(at + 1, text.find(' ', at + 1) - at - 1));
}

double secondsOf(const timespec& time) {
  constexpr double nanosecond = 1e-9;
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * nanosecond;
}

// Real time in seconds, as in files' timestamps.
double timeOf(std::uint64_t ticks) {
  timespec now{};
  timespec sinceBoot{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  ::clock_gettime(CLOCK_BOOTTIME, &sinceBoot);
  return secondsOf(now) - secondsOf(sinceBoot) +
         static_cast<double>(ticks) / static_cast<double>(::sysconf(_SC_CLK_TCK));
}

std::optional<double> changeOf(const host::Root& root, const std::string& path) {
  const FileDescriptor file = root.open(path, O_PATH | O_NOFOLLOW);
  struct stat status {};
  if (!file || ::fstat(file.get(), &status) != 0) {
    return std::nullopt;
  }
  return secondsOf(status.st_ctim);
}

// When the first QEMU hook that libvirt can find was installed.
std::optional<double> firstHook(const host::Root& root) {
  const std::string folder = hooksFolder;
  auto first = changeOf(root, folder + "/qemu");
  for (const std::string& name : root.list(folder + "/qemu.d")) {
    const auto change = changeOf(root, folder + "/qemu.d/" + name);
    if (change && (!first || *change < *first)) {
      first = change;
    }
  }
  return first;
}

}  // namespace

std::optional<std::string> processOf(const host::Root& root, const std::string& daemon) {
  const auto pid = root.readNumber("run/" + daemon + ".pid");
  if (!pid || root.readText("proc/" + std::to_string(*pid) + "/comm") != daemon) {
    return std::nullopt;
  }
  return std::to_string(*pid);
}

std::optional<std::string> daemonMark(const host::Root& root, const std::string& daemon) {
  const auto process = processOf(root, daemon);
  const auto ticks = process ? startTicks(root, *process) : std::nullopt;
  return ticks ? std::optional(daemon + " " + *process + " " + std::to_string(*ticks))
               : std::nullopt;
}

std::optional<HookKnowledge> hookKnowledge(const host::Root& root,
                                           const std::string& runDirectory) {
  for (const char* daemon : daemons) {
    const auto process = processOf(root, daemon);
    const auto ticks = process ? startTicks(root, *process) : std::nullopt;
    if (!ticks) {
      continue;
    }
    const auto hook = firstHook(root);
    if (hook && *hook <= timeOf(*ticks)) {
      return HookKnowledge::startedAfter;
    }
    const auto marks = splitLines(root.readText(runDirectory + "/" + daemonMarkFile).value_or(""));
    const std::string mark = daemonMark(root, daemon).value_or("");
    if (std::ranges::find(marks, mark) != marks.end()) {
      return HookKnowledge::reloaded;
    }
    return ::geteuid() == 0 ? std::optional(HookKnowledge::stale) : std::nullopt;
  }
  return HookKnowledge::noDaemon;
}

}  // namespace vfpass::doctor
