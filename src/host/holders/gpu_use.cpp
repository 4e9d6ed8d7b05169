#include "holders/gpu_use.hpp"

#include <algorithm>
#include <array>

#include "holders/container.hpp"

namespace vfpass::host {
namespace {

// `process` is a task name, which the kernel truncates to 15 characters.
struct KnownUser {
  std::string_view process;
  std::string_view what;
  std::string_view remedy;
};

constexpr std::string_view endDisplay =
    "let another GPU drive the display, or stop it: systemctl stop display-manager";

constexpr std::array<KnownUser, 15> known{
    {{"nvidia-persiste", "the persistence daemon", "systemctl stop nvidia-persistenced"},
     {"nv-fabricmanage", "the fabric manager",
      "systemctl stop nvidia-fabricmanager, once nothing else on this host needs NVLink"},
     {"nv-hostengine", "the monitor (DCGM)", "systemctl stop nvidia-dcgm"},
     {"dcgm-exporter", "the monitor (DCGM)", "systemctl stop dcgm-exporter"},
     {"nvidia-powerd", "the power daemon", "systemctl stop nvidia-powerd"},
     {"nvidia-imex", "the IMEX daemon", "systemctl stop nvidia-imex"},
     {"Xorg", "the display server", endDisplay},
     {"Xwayland", "the display server", endDisplay},
     {"gnome-shell", "the display server", endDisplay},
     {"kwin_wayland", "the display server", endDisplay},
     {"kwin_x11", "the display server", endDisplay},
     {"sway", "the display server", endDisplay},
     {"weston", "the display server", endDisplay},
     // logind opens the device on behalf of the session (org.freedesktop.login1, TakeDevice).
     {"systemd-logind", "the login manager, for a display", endDisplay},
     {"plymouthd", "the boot splash", "plymouth quit"}}};

const KnownUser* knownUser(const std::string& name) {
  const auto found = std::ranges::find(known, name, &KnownUser::process);
  return found == known.end() ? nullptr : &*found;
}

std::optional<Container> containerOf(const Root& root, const Process& process) {
  constexpr std::size_t longest = std::size_t{64} << 10U;
  return containerIn(root.readText("proc/" + process.id + "/cgroup", longest).value_or(""));
}

}  // namespace

GpuUse gpuUseOf(const Root& given, const Process& process) {
  // Keep processes out of snapshots.
  const Root unrecorded;
  const Root& root = given.isLive() ? unrecorded : given;
  const KnownUser* user = knownUser(process.name);
  const std::string name =
      (user == nullptr ? "" : std::string(user->what) + " ") + describe(process);
  if (const auto container = containerOf(root, process)) {
    const std::string which = container->runtime + " container " + container->id;
    return {name + " in " + which,
            (user == nullptr ? "wait until its work ends, then stop the " : "stop the ") + which +
                " with its runtime"};
  }
  return {name, user == nullptr ? "wait until it ends, then try again" : std::string(user->remedy)};
}

}  // namespace vfpass::host
