#include "vfpass/host/gpu_users.hpp"

#include <algorithm>
#include <array>

#include "holders/device_file_holders.hpp"
#include "vfpass/base/shell.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/host/command_line.hpp"

namespace vfpass::host {
namespace {

constexpr std::size_t idLength = 64;  // a SHA-256 hash in hexadecimal
constexpr std::size_t shownLength = 12;
constexpr std::size_t longestContainerName = 64;

struct Prefix {
  std::string_view text;
  std::string_view runtime;
};

// Names of the runtimes' systemd scopes: `docker-ID.scope`. conmon's own scopes
// (`crio-conmon-ID.scope`) contain no process of the container.
constexpr std::array<Prefix, 5> scopes{{{"docker-", "docker"},
                                        {"libpod-", "podman"},
                                        {"crio-", "CRI-O"},
                                        {"cri-containerd-", "containerd"},
                                        {"nerdctl-", "containerd"}}};
// Parent groups of `ID` for runtimes without systemd.
constexpr std::array<Prefix, 4> parents{{{"docker", "docker"},
                                         {"libpod_parent", "podman"},
                                         {"kubepods", "containerd"},
                                         {"pod", "containerd"}}};

bool isId(std::string_view text) {
  return text.size() == idLength &&
         text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

std::optional<Container> inScope(std::string_view group) {
  constexpr std::string_view suffix = ".scope";
  if (group.ends_with(suffix)) {
    group.remove_suffix(suffix.size());
  }
  for (const auto& [text, runtime] : scopes) {
    if (group.starts_with(text) && isId(group.substr(text.size()))) {
      return Container{std::string(runtime), std::string(group.substr(text.size(), shownLength))};
    }
  }
  return std::nullopt;
}

std::optional<Container> below(std::string_view parent, std::string_view group) {
  constexpr std::string_view payload = "lxc.payload.";
  if (group.starts_with(payload) || parent == "lxc") {
    const auto name = parent == "lxc" ? group : group.substr(payload.size());
    return Container{"LXC", printable(std::string(name.substr(0, longestContainerName)))};
  }
  for (const auto& [text, runtime] : parents) {
    if (parent.starts_with(text) && isId(group)) {
      return Container{std::string(runtime), std::string(group.substr(0, shownLength))};
    }
  }
  return std::nullopt;
}

// The innermost container in the path of one line.
std::optional<Container> inPath(std::string_view path) {
  std::optional<Container> found;
  std::string_view parent;
  while (!path.empty()) {
    const auto end = std::min(path.find('/'), path.size());
    const std::string_view group = path.substr(0, end);
    auto here = inScope(group);
    here = here ? here : below(parent, group);
    found = here ? here : found;
    parent = group;
    path.remove_prefix(std::min(end + 1, path.size()));
  }
  return found;
}

// The path in `0::/system.slice/docker-ID.scope` (cgroups(7): hierarchy, controllers, path),
// without its first slash.
std::string_view pathIn(std::string_view line) {
  const auto start = line.find(":/");
  return start == std::string_view::npos ? std::string_view{} : line.substr(start + 2);
}

}  // namespace

std::optional<Container> containerIn(std::string_view cgroups) {
  for (const std::string& line : splitLines(std::string(cgroups))) {
    if (auto found = inPath(pathIn(line))) {
      return found;
    }
  }
  return std::nullopt;
}

// `0::/system.slice/ollama.service/worker` or `/system.slice/system-x.slice/x@1.service`. The names
// are those of units, so nothing of systemd's escapes has to be decoded. Only systemd creates
// groups below system.slice; in groups of their own, users can choose every later part of the path.
std::string systemServiceIn(std::string_view cgroups) {
  constexpr std::string_view slice = "system.slice/";
  constexpr std::string_view suffix = ".service";
  for (const std::string& line : splitLines(std::string(cgroups))) {
    std::string_view path = pathIn(line);
    if (!path.starts_with(slice)) {
      continue;
    }
    path.remove_prefix(slice.size());
    while (!path.empty()) {
      const auto end = std::min(path.find('/'), path.size());
      const auto unit = path.substr(0, end);
      if (unit.size() > suffix.size() && unit.ends_with(suffix)) {
        return printable(std::string(unit));
      }
      path.remove_prefix(std::min(end + 1, path.size()));
    }
  }
  return {};
}

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
