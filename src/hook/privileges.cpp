#include "supervisor.hpp"

#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>

namespace vfpass::hook {
namespace {

using Set = std::uint64_t;

constexpr Set setOf(int capability) { return Set{1} << static_cast<unsigned>(capability); }

constexpr Set inEffect =
    setOf(CAP_NET_ADMIN)           // rtnetlink, devlink and RDMA netlink
    | setOf(CAP_SYS_ADMIN)         // setns(2); PCI config space beyond the first 64 bytes
    | setOf(CAP_SYS_PTRACE)        // /proc/PID/fd and /proc/PID/ns of a QEMU of another user
    | setOf(CAP_DAC_READ_SEARCH);  // only their owner may read those directories
// With no_new_privs, execve(2) gives root's programs at most what is permitted here
// (cap_bprm_creds_from_file), and modprobe has to load modules.
constexpr Set permitted = inEffect | setOf(CAP_SYS_MODULE);

struct Failure {
  int first = 0;
  void note(bool failed) {
    if (failed && first == 0) {
      first = errno;
    }
  }
};

bool isHeld(int capability) {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  std::array<__user_cap_data_struct, 2> sets{};
  const auto number = static_cast<unsigned>(capability);
  return ::syscall(SYS_capget, &header, sets.data()) == 0 &&
         (sets[number / 32].effective >> (number % 32) & 1U) != 0;
}

// Before capset(2), because it needs CAP_SETPCAP.
void limitBoundingSet(Failure& failure) {
  if (!isHeld(CAP_SETPCAP)) {
    return;
  }
  // PR_CAPBSET_READ fails for the first number that the kernel does not know.
  for (int number = 0; ::prctl(PR_CAPBSET_READ, number, 0, 0, 0) >= 0; ++number) {
    if ((permitted & setOf(number)) == 0) {
      failure.note(::prctl(PR_CAPBSET_DROP, number, 0, 0, 0) != 0);
    }
  }
}

void limitOwnSets(Failure& failure) {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  std::array<__user_cap_data_struct, 2> sets{};
  if (::syscall(SYS_capget, &header, sets.data()) != 0) {
    failure.note(true);
    return;
  }
  for (unsigned half = 0; half < sets.size(); ++half) {
    const auto part = [&](Set set) { return static_cast<std::uint32_t>(set >> (32 * half)); };
    sets[half].permitted &= part(permitted);
    sets[half].effective &= part(inEffect);
    sets[half].inheritable = 0;
  }
  failure.note(::syscall(SYS_capset, &header, sets.data()) != 0);
}

}  // namespace

int reducePrivileges() noexcept {
  Failure failure;
  failure.note(::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0);
  failure.note(::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0);
  failure.note(::prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) != 0);
  limitBoundingSet(failure);
  limitOwnSets(failure);
  return failure.first;
}

}  // namespace vfpass::hook
