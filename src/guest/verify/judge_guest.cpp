#include "judge_guest.hpp"

#include <algorithm>
#include <string>

#include "vfpass/base/bounded_read.hpp"
#include "vfpass/base/text.hpp"

namespace vfpass::verify {
namespace {

std::string textOf(std::uint64_t bytes) {
  return bytes == UINT64_MAX ? "unlimited" : sizeText(bytes);
}

// `unlimited (/etc/security/limits.conf)`; the limit that counts is the soft one, which a program
// may raise to the hard one.
std::string textOf(const GuestMemoryLimit& limit) {
  if (!limit.soft && !limit.hard) {
    return "not set";
  }
  const std::string value =
      limit.soft ? textOf(*limit.soft) : "only the hard limit is set, " + textOf(*limit.hard);
  return value + " (" + limit.file + ")";
}

// A registered buffer counts as locked (ib_umem_get() in drivers/infiniband/core/umem.c), unless
// the program has CAP_IPC_LOCK. Half of the memory suffices for any program that leaves room for
// another copy.
bool suffices(const GuestMemoryLimit& limit, const GuestMemoryLock& lock) {
  return limit.soft &&
         (*limit.soft == UINT64_MAX || (lock.memoryBytes && *limit.soft >= *lock.memoryBytes / 2));
}

std::string othersIn(const GuestMemoryLock& lock) {
  std::vector<std::string> others;
  for (const GuestMemoryLimit& each : lock.loginOfOthers) {
    if (suffices(each, lock)) {
      others.push_back(each.who + " " + textOf(each));
    }
  }
  return join(others, ", ");
}

// A login inherits the limit of the service that started it (sshd), and PAM then sets its own.
Finding judgeMemoryLock(const GuestMemoryLock& lock) {
  const bool own = lock.login.soft.has_value();
  const std::string others = othersIn(lock);
  Finding finding{"memory-lock",
                  "",
                  Outcome::passed,
                  "ordinary users may lock the memory of their RDMA buffers",
                  "logins: " + textOf(lock.login) + "; services: " + textOf(lock.services),
                  ""};
  if (!others.empty()) {
    finding.seen += "; of some users: " + others;
  }
  if (suffices(own ? lock.login : lock.services, lock)) {
    return finding;
  }
  const bool configured = own || lock.services.soft;
  finding.outcome = configured ? Outcome::warning : Outcome::waived;
  finding.seen +=
      configured
          ? ": larger buffers cannot be registered (ENOMEM)"
          : ": the system's default applies, usually 8 MiB (64 KiB before Linux 5.16), and larger "
            "buffers cannot be registered (ENOMEM); root is not limited";
  if (!configured) {
    return finding;
  }
  finding.remedy =
      "in the guest: let a file in /etc/security/limits.d have two lines, '* soft memlock "
      "unlimited' "
      "and '* hard memlock unlimited', and for services a file in /etc/systemd/system.conf.d the "
      "line DefaultLimitMEMLOCK=infinity below [Manager]; then restart the guest. Root is not "
      "limited";
  finding.remedy += others.empty() ? "" : ", and those users need nothing";
  return finding;
}

// Modules of DKMS are built when a kernel is installed, if its headers are.
Finding judgeNextKernel(const std::vector<GuestKernel>& kernels) {
  Finding finding{"kernel-update",
                  "",
                  Outcome::passed,
                  "installed newer kernels have the RDMA and GPU modules that are loaded now",
                  {},
                  {}};
  std::vector<std::string> seen;
  std::vector<std::string> incomplete;
  bool known = true;
  for (const GuestKernel& each : kernels) {
    known = known && each.missing;
    if (!each.missing) {
      seen.push_back(each.release + ": its list of modules is not readable");
    } else if (!each.missing->empty()) {
      seen.push_back(each.release + " lacks " + join(*each.missing, ", "));
      incomplete.push_back(each.release);
    } else {
      seen.push_back(each.release + ": all of them");
    }
  }
  finding.seen = seen.empty() ? "no newer kernel is installed" : join(seen, "; ");
  if (!incomplete.empty()) {
    finding.outcome = Outcome::warning;
    finding.remedy =
        "in the guest, before it restarts: install the headers of kernel " + incomplete.back() +
        " and run dkms autoinstall -k " + incomplete.back() +
        ", or install the packages with its modules (linux-modules-extra, linux-modules-nvidia)";
  } else if (!known) {
    finding.outcome = Outcome::waived;
  }
  return finding;
}

}  // namespace

std::vector<Finding> judgeGuestSystem(const GuestView& view) {
  std::vector<Finding> findings;
  if (view.memoryLock) {
    findings.push_back(judgeMemoryLock(*view.memoryLock));
  }
  if (view.newerKernels) {
    findings.push_back(judgeNextKernel(*view.newerKernels));
  }
  return findings;
}

}  // namespace vfpass::verify
