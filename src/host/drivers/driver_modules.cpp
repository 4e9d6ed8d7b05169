#include "vfpass/host/driver_modules.hpp"

#include <fcntl.h>
#include <fnmatch.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <optional>

#include "sysfs/kernel_write.hpp"
#include "vfpass/base/deadline.hpp"
#include "vfpass/base/pci_files.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/error.hpp"
#include "vfpass/host/find_holders.hpp"
#include "vfpass/host/pci_function.hpp"

namespace vfpass::host {
namespace {

constexpr const char* modprobe = "/sbin/modprobe";

struct SpawnActions {
  SpawnActions() { ::posix_spawn_file_actions_init(&value); }
  SpawnActions(const SpawnActions&) = delete;
  SpawnActions& operator=(const SpawnActions&) = delete;
  ~SpawnActions() { ::posix_spawn_file_actions_destroy(&value); }

  posix_spawn_file_actions_t value{};
};

pid_t spawnModprobe(const std::string& module) {
  SpawnActions actions;
  // libvirt reads our stderr until every copy of it is closed, and a modprobe that hangs cannot be
  // killed.
  for (int descriptor = 0; descriptor <= 2; ++descriptor) {
    ::posix_spawn_file_actions_addopen(&actions.value, descriptor, "/dev/null", O_RDWR, 0);
  }
  ::posix_spawn_file_actions_addclosefrom_np(&actions.value, 3);
  std::string name = module;
  std::array<char, 16> program{"modprobe"};
  std::array<char, 8> quiet{"-q"};
  std::array<char, 8> end{"--"};
  const std::array<char*, 5> arguments{program.data(), quiet.data(), end.data(), name.data(),
                                       nullptr};
  const std::array<char*, 1> environment{nullptr};
  pid_t process = -1;
  const int error = ::posix_spawn(&process, modprobe, &actions.value, nullptr, arguments.data(),
                                  environment.data());
  if (error != 0) {
    throw Error(std::string("cannot run ") + modprobe + ": " + errnoText(error),
                "load the module " + module + " manually");
  }
  return process;
}

// False at the deadline.
bool waitForEnd(pid_t process, const Deadline& deadline, int& status) {
  return waitForExit({process}, deadline) &&
         pollUntil(deadline, [&] { return ::waitpid(process, &status, WNOHANG) != 0; });
}

}  // namespace

bool isLoadable(std::string_view module) {
  constexpr std::array<std::string_view, 2> softRoce{"crc32_generic", "rdma_rxe"};
  return isVfioDriver(module) || std::ranges::find(softRoce, module) != softRoce.end();
}

void loadModule(const std::string& module, std::chrono::milliseconds timeout) {
  if (!isLoadable(module)) {
    throw Error("cannot load module " + printable(module.substr(0, 64)) +
                ": neither a VFIO driver nor part of SoftRoCE");
  }
  const std::string remedy = "run `modprobe " + module + "` and check the kernel log (dmesg)";
  const pid_t process = spawnModprobe(module);
  int status = 0;
  if (!waitForEnd(process, Deadline(timeout), status)) {
    ::kill(process, SIGKILL);
    throw TimeoutError("cannot load module " + module + ": modprobe did not finish within " +
                           durationText(timeout),
                       remedy);
  }
  if (status != 0) {
    throw Error("cannot load module " + module + ": modprobe failed", remedy);
  }
}

namespace {

constexpr std::size_t moduleListLimit = std::size_t{4} << 20U;
constexpr std::string_view linePrefix = "alias vfio_pci:";
constexpr std::string_view standard = "vfio-pci";

struct Alias {
  std::string pattern;
  std::string driver;
};

// `alias vfio_pci:v000010DEd00002342sv*sd*bc*sc*i* nvgrace_gpu_vfio_pci`. Module names have
// underscores; of the drivers only vfio-pci has a hyphen.
std::optional<Alias> aliasIn(std::string_view line) {
  if (!line.starts_with(linePrefix)) {
    return std::nullopt;
  }
  line.remove_prefix(linePrefix.size());
  const auto space = line.find(' ');
  if (space == std::string_view::npos) {
    return std::nullopt;
  }
  std::string module(trim(line.substr(space + 1)));
  return Alias{std::string(line.substr(0, space)),
               module == "vfio_pci" ? std::string(standard) : std::move(module)};
}

}  // namespace

// The same rule as libvirt 10.0 with managed='yes' (virPCIDeviceFindBestVFIOVariant).
std::string bestVfioDriver(std::string_view modalias, std::string_view aliases) {
  constexpr std::string_view bus = "pci:";
  if (!modalias.starts_with(bus)) {
    return std::string(standard);
  }
  const std::string device(modalias.substr(bus.size()));
  std::string best(standard);
  std::optional<std::ptrdiff_t> fewest;
  while (!aliases.empty()) {
    const auto end = std::min(aliases.find('\n'), aliases.size());
    const auto alias = aliasIn(aliases.substr(0, end));
    aliases.remove_prefix(std::min(end + 1, aliases.size()));
    if (!alias || !isVfioDriver(alias->driver) ||
        ::fnmatch(alias->pattern.c_str(), device.c_str(), 0) != 0) {
      continue;
    }
    const auto wildcards = std::ranges::count(alias->pattern, '*');
    if (!fewest || wildcards < *fewest) {
      fewest = wildcards;
      best = alias->driver;
    }
  }
  return best;
}

namespace {

// One of depmod's files.
std::optional<std::string> moduleList(const Root& root, const std::string& name) {
  // Keep them out of snapshots.
  const Root unrecorded;
  const Root& modules = root.isLive() ? unrecorded : root;
  const std::string release = modules.readText("proc/sys/kernel/osrelease").value_or("");
  const bool valid = !release.empty() && release.find('/') == std::string::npos;
  return valid ? modules.readText("lib/modules/" + release + "/" + name, moduleListLimit)
               : std::nullopt;
}

std::optional<std::string> aliasesOfKernel(const Root& root) {
  return moduleList(root, "modules.alias");
}

}  // namespace

std::string bestVfioDriver(const Root& root, const std::string& directory) {
  const auto modalias = root.readText(directory + "/modalias");
  return modalias ? bestVfioDriver(*modalias, aliasesOfKernel(root).value_or(""))
                  : std::string(standard);
}

std::optional<bool> hasVfioDriver(const Root& root, const std::string& driver) {
  if (root.exists(driverPath(driver))) {
    return true;
  }
  const auto aliases = aliasesOfKernel(root);
  if (!aliases) {
    return std::nullopt;
  }
  return std::ranges::any_of(splitLines(*aliases), [&](const std::string& line) {
    const auto alias = aliasIn(line);
    return alias && alias->driver == driver;
  });
}

// When it is loaded, VFIO reserves numbers for these devices (vfio_cdev_init in
// drivers/vfio/device_cdev.c). iommufd's own device has a dynamic number, and so no alias.
std::optional<bool> hasIommufd(const Root& root) {
  if (root.exists("sys/module/vfio")) {
    const auto devices = root.readText("proc/devices", moduleListLimit);
    return devices ? std::optional(std::ranges::any_of(
                         splitLines(*devices),
                         [](const std::string& line) { return line.ends_with(" vfio-dev"); }))
                   : std::nullopt;
  }
  if (root.exists("sys/class/misc/iommu")) {
    return true;
  }
  const auto modules = moduleList(root, "modules.dep");
  return modules ? std::optional(modules->find("/iommufd.ko") != std::string::npos) : std::nullopt;
}

}  // namespace vfpass::host
