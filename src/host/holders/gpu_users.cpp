#include "vfpass/host/find_holders.hpp"

#include <algorithm>
#include <array>

#include "holders/holder_kinds.hpp"
#include "vfpass/base/shell.hpp"
#include "vfpass/host/container_and_guest_names.hpp"

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
  const auto* const found = std::ranges::find(known, name, &KnownUser::process);
  return found == known.end() ? nullptr : &*found;
}

constexpr std::size_t longestCgroup = std::size_t{64} << 10U;

std::string cgroupsOf(const Root& root, const Process& process) {
  return root.readText("proc/" + process.id + "/cgroup", longestCgroup).value_or("");
}

// A QEMU that renders for a guest's display on the host's GPU.
std::string guestOf(const Root& root, const Process& process) {
  return process.name.starts_with("qemu") ? parseQemuGuest(readCommandLine(root, process.id)).name
                                          : "";
}

}  // namespace

GpuUse gpuUseOf(const Root& root, const Process& process) {
  // Keep processes out of snapshots.
  const Root unrecorded;
  const Root& readFrom = root.isLive() ? unrecorded : root;
  const KnownUser* user = knownUser(process.name);
  const std::string name =
      (user == nullptr ? "" : std::string(user->what) + " ") + describe(process);
  const std::string groups = cgroupsOf(readFrom, process);
  if (const auto container = containerIn(groups)) {
    const std::string which = container->runtime + " container " + container->id;
    return {name + " in " + which,
            (user == nullptr ? "wait until its work ends, then stop the " : "stop the ") + which +
                " with its runtime"};
  }
  if (user != nullptr) {
    return {name, std::string(user->remedy)};
  }
  if (const std::string guest = guestOf(readFrom, process); !guest.empty()) {
    return {name + " of VM " + guest, "virsh shutdown " + shellArgument(guest)};
  }
  if (const std::string service = systemServiceIn(groups); !service.empty()) {
    return {name + " of " + service,
            "systemctl stop " + shellArgument(service) + ", once nothing on this host needs it"};
  }
  return {name, "wait until it ends, then try again"};
}

GpuSurvey surveyGpus(const Root& root, const std::vector<PciAddress>& gpus,
                     const std::vector<PciAddress>& others) {
  std::vector<FunctionFacts> functions;
  for (const PciAddress& gpu : gpus) {
    FunctionFacts& function = functions.emplace_back();
    function.address = gpu;
    function.driver = "nvidia";
  }
  for (const PciAddress& gpu : others) {
    functions.emplace_back().address = gpu;
  }
  const ProcessList list = readProcesses(root);
  GpuSurvey survey;
  survey.blindSpot = list.blindSpot.empty() ? list.unread : list.blindSpot;
  for (const DeviceFileUse& use : deviceFileUses(root, functions, list.processes)) {
    const GpuUse user = gpuUseOf(root, *use.process);
    GpuUsers& users = survey.users[use.function];
    users.names.push_back(user.who);
    if (std::ranges::find(users.remedies, user.remedy) == users.remedies.end()) {
      users.remedies.push_back(user.remedy);
    }
  }
  return survey;
}

}  // namespace vfpass::host
