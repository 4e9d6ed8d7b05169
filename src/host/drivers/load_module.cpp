#include "drivers/load_module.hpp"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>

#include "helper/poll_until.hpp"
#include "sysfs/kernel_write.hpp"
#include "vfpass/base/deadline.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/error.hpp"
#include "vfpass/host/vfio_users.hpp"

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

}  // namespace vfpass::host
