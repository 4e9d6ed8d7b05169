#include <algorithm>
#include <array>

#include "check.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/host/driver_modules.hpp"

namespace vfpass::doctor {
namespace {

constexpr std::uint64_t kibibyte = 1024;
constexpr unsigned resourceCapability = 24;  // CAP_SYS_RESOURCE
constexpr std::uint64_t maxGuestMemory = 1ULL << 52U;

std::string valueAfter(const std::string& text, const std::string& name) {
  for (const std::string& line : splitLines(text)) {
    if (line.starts_with(name)) {
      const auto rest = trim(std::string_view(line).substr(name.size()));
      return std::string(rest.substr(0, rest.find_first_of(" \t")));
    }
  }
  return {};
}

bool hasCapability(const std::string& status) {
  const auto bits = parseNumber(valueAfter(status, "CapEff:"), 16);
  return bits && (*bits >> resourceCapability & 1U) != 0;
}

// `libvirtd raises`, or `libvirtd 67108864`: libvirt raises QEMU's limit with prlimit(2), which
// needs CAP_SYS_RESOURCE or a limit of its own that is high enough.
std::optional<std::string> readLimit(const host::Root& root) {
  for (const char* daemon : daemons) {
    const auto process = processOf(root, daemon);
    if (!process) {
      continue;
    }
    const std::string folder = "proc/" + *process;
    const std::string limit =
        valueAfter(root.readText(folder + "/limits").value_or(""), "Max locked memory");
    if (hasCapability(root.readText(folder + "/status").value_or(""))) {
      return std::string(daemon) + " raises";
    }
    return limit.empty() ? std::nullopt : std::optional(daemon + (" " + limit));
  }
  return std::nullopt;
}

std::uint64_t neededBy(const View& view, const GuestMemory& guest) {
  const std::uint64_t added = view.requirements().vfs.size() + view.requirements().functions.size();
  const std::uint64_t devices = std::max<std::uint64_t>(guest.devices, added);
  const std::uint64_t memory = std::min(guest.bytes, maxGuestMemory);
  return memory * (guest.viommu ? std::clamp<std::uint64_t>(devices, 1, 64) : 1) + gibibyte;
}

std::string amount(std::uint64_t bytes) { return std::to_string(bytes / mebibyte) + " MiB"; }

void checkDaemonLimit(const View& view, Results& results) {
  const std::string expected = "a daemon that may raise QEMU's limit";
  const auto answer = view.answer("libvirt/memory-lock", [&] { return readLimit(view.root()); });
  if (!answer || answer->find(' ') == std::string::npos) {
    return results.notObservable("", expected, "cannot find a running daemon",
                                 "grep locked /proc/$(pidof libvirtd)/limits");
  }
  const std::string daemon = answer->substr(0, answer->find(' '));
  const std::string limit = answer->substr(answer->find(' ') + 1);
  const auto bytes = parseNumber(limit);
  if (limit == "raises" || limit == "unlimited") {
    results.passed(daemon, expected, limit == "raises" ? "it has CAP_SYS_RESOURCE" : limit);
  } else if (!bytes) {
    results.notObservable(daemon, expected, "its limit is not a number", "");
  } else {
    results.failed(daemon, expected, "no CAP_SYS_RESOURCE, and a limit of " + amount(*bytes),
                   "set LimitMEMLOCK=infinity with systemctl edit " + daemon + ", then restart it");
  }
}

// libvirt applies the XML's hard_limit if it is set, otherwise RAM (once for each device behind a
// virtual IOMMU) plus 1 GiB.
void checkGuestLimit(const View& view, Results& results) {
  const GuestMemory& guest = *view.requirements().guest;
  const std::uint64_t needed = neededBy(view, guest);
  const std::string expected = "no hard_limit, or at least " + amount(needed);
  if (!guest.hardLimit) {
    results.passed("", expected, "none: libvirt allows " + amount(needed));
  } else if (*guest.hardLimit >= needed) {
    results.passed("", expected, amount(*guest.hardLimit));
  } else {
    results.failed("", expected, amount(*guest.hardLimit),
                   "virsh memtune --config --hard-limit " + std::to_string(needed / kibibyte) +
                       " " + shellQuoted(guest.domain));
  }
}

std::string withoutGuest(const View& view) {
  return view.requirements().guest ? "" : "checked only with --vm, for a domain that exists";
}

std::string withoutConfidentialGuest(const View& view) {
  return view.requirements().confidential
             ? ""
             : "checked only with --vm, for a domain with <launchSecurity> and mapped devices";
}

void checkConfidentialGuest(const View& view, Results& results) {
  const ConfidentialGuest& guest = *view.requirements().confidential;
  const std::string expected =
      "possible with <launchSecurity type='" + printable(guest.type) + "'>";
  for (const auto& [use, verdict, reason, remedy] : guest.uses) {
    switch (verdict) {
      case ConfidentialVerdict::possible:
        results.passed(use, expected, reason);
        break;
      case ConfidentialVerdict::limited:
        results.warned(use, expected, reason, remedy);
        break;
      case ConfidentialVerdict::impossible:
        results.failed(use, expected, reason, remedy);
        break;
      case ConfidentialVerdict::unknown:
        results.notObservable(use, expected, reason, remedy);
        break;
    }
  }
}

std::string withoutIommufd(const View& view) {
  return view.requirements().iommufd.empty()
             ? "neither a mapping nor, with --vm, its domain requests iommufd"
             : "";
}

// Of iommufd for VFIO devices: available or absent; nullopt: unknown.
std::optional<std::string> iommufdState(const View& view) {
  return view.answer("modules/iommufd/state", [&]() -> std::optional<std::string> {
    const auto has = host::hasIommufd(view.root());
    return has ? std::optional(*has ? "available" : "absent") : std::nullopt;
  });
}

void checkIommufd(const View& view, Results& results) {
  const std::string expected =
      "a kernel with iommufd for VFIO devices (CONFIG_IOMMUFD, CONFIG_VFIO_DEVICE_CDEV)";
  const auto state = iommufdState(view);
  for (const IommufdUse& use : view.requirements().iommufd) {
    const std::string subject = view.requirements().oneVm ? "" : printable(use.domainName);
    if (state == "available") {
      results.passed(subject, expected, use.what + ", and the kernel has it");
    } else if (state == "absent") {
      results.failed(subject, expected,
                     use.what + ", but the kernel has no iommufd: the domain cannot start",
                     use.remedy);
    } else {
      results.notObservable(subject, expected, use.what + "; whether the kernel has it is unknown",
                            "grep vfio-dev /proc/devices");
    }
  }
}

std::string withoutPeers(const View& view) {
  const auto& confidential = view.requirements().confidential;
  if (confidential && bouncesDma(confidential->type)) {
    return "the guest maps no BARs of other devices, whatever VFIO maps: see confidential-guest";
  }
  return view.requirements().peers.empty() ? "checked with --vm, for a domain with two devices of "
                                             "the host, and for mappings that "
                                             "use iommufd"
                                           : "";
}

std::string seenOf(const PeerMapping& peers) {
  return (peers.nextStart ? "from the next start on: "
          : peers.running ? "the running QEMU: "
                          : "the domain's XML: ") +
         peers.reason;
}

void checkPeerMapping(const View& view, Results& results) {
  const std::string expected = "the BARs of each device are mapped for the others";
  for (const PeerMapping& peers : view.requirements().peers) {
    const std::string subject = view.requirements().oneVm ? "" : printable(peers.domainName);
    if (!peers.possible) {
      results.notObservable(subject, expected, seenOf(peers), peers.remedy);
    } else if (*peers.possible) {
      results.passed(subject, expected, seenOf(peers));
    } else if (peers.nextStart) {
      results.warned(subject, expected, seenOf(peers), peers.remedy);
    } else {
      results.failed(subject, expected, seenOf(peers), peers.remedy);
    }
  }
}

std::string withoutMirroredGuest(const View& view) {
  return view.requirements().mirrored
             ? ""
             : "checked only with --vm, for a VM with a GPU in a mirrored tree";
}

// What NCCL takes from sysfs for them, and computes (measured; docs/guest-topology.md).
std::string switchPortsOf(const MirroredGuest& guest) {
  return "QEMU's switch ports (x3130) above " + joinFirst(guest.behindSwitches) +
         " show 2.5 GT/s x1, and NCCL assumes 0.2 GB/s between switches";
}

// Of a tree that needs no file: NCCL takes one all the same, and that of earlier devices misleads
// it.
void checkUnneededFile(const MirroredGuest& guest, Results& results) {
  const std::string seen = "no device is behind a virtual switch";
  const std::string expected = "no topology file for NCCL, or that of the present devices";
  const Finding* found = guest.topologyFile ? &*guest.topologyFile : nullptr;
  if (found == nullptr || found->outcome == Outcome::passed) {
    results.passed("", expected, seen + (found == nullptr ? "" : "; " + found->seen));
  } else if (found->outcome == Outcome::warning) {
    results.failed("", expected, found->seen, found->remedy);
  } else {
    results.notObservable("", expected, seen + ", but a file may be there: " + found->seen,
                          found->remedy);
  }
}

// As reported by the guest agent, if the domain runs.
void checkNcclTopology(const View& view, Results& results) {
  const MirroredGuest& guest = *view.requirements().mirrored;
  const std::string expected =
      "a topology file for NCCL in the guest, or no device behind a virtual switch";
  if (guest.behindSwitches.empty()) {
    return checkUnneededFile(guest, results);
  }
  if (!guest.topologyFile) {
    return results.notObservable(
        "", expected, "the domain is not running; without a file: " + switchPortsOf(guest),
        "start the domain, then run `vfpass guest-setup " + shellArgument(guest.domain) +
            "`, which writes the file");
  }
  const Finding& found = *guest.topologyFile;
  if (found.outcome == Outcome::passed) {
    results.passed("", expected, found.seen);
  } else if (found.outcome == Outcome::warning) {
    results.failed("", expected, found.seen + "; " + switchPortsOf(guest), found.remedy);
  } else {
    results.notObservable("", expected, found.seen + "; without a file: " + switchPortsOf(guest),
                          found.remedy);
  }
}

constexpr std::array guestTable{
    Check{"memory-lock", "VFIO pins all of a guest's memory", always, checkDaemonLimit},
    Check{"guest-memory-lock", "a domain fails to start if VFIO may not pin all of its memory",
          withoutGuest, checkGuestLimit},
    Check{"confidential-guest",
          "devices reach only the memory that a guest with <launchSecurity> shares",
          withoutConfidentialGuest, checkConfidentialGuest},
    Check{"iommufd", "a domain whose devices use iommufd starts only on a kernel that has it",
          withoutIommufd, checkIommufd},
    Check{"peer-mapping", "GPU and NIC reach each other only through BARs that VFIO has mapped",
          withoutPeers, checkPeerMapping},
    Check{"guest-nccl-topology",
          "without it NCCL takes each virtual switch for a 2.5 GT/s x1 link and assumes 0.2 GB/s",
          withoutMirroredGuest, checkNcclTopology}};

}  // namespace

std::span<const Check> guestChecks() { return guestTable; }

}  // namespace vfpass::doctor
