#include <algorithm>
#include <array>

#include "check.hpp"
#include "daemon_process.hpp"
#include "vfpass/base/shell.hpp"
#include "vfpass/base/text.hpp"

namespace vfpass::doctor {
namespace {

constexpr std::uint64_t kibibyte = 1024;
constexpr std::uint64_t mebibyte = 1024 * kibibyte;
constexpr std::uint64_t gibibyte = 1024 * mebibyte;
constexpr unsigned resourceCapability = 24;  // CAP_SYS_RESOURCE
constexpr std::uint64_t mostGuestMemory = 1ULL << 52U;

/// libvirt raises QEMU's limit by prlimit(2), which takes the capability, or room in its own.
struct DaemonLimit {
  std::string daemon;
  bool raises = false;
  std::string bytes;  ///< `unlimited`, or a number
};

std::string valueBehind(const std::string& text, const std::string& name) {
  for (const std::string& line : splitLines(text)) {
    if (line.starts_with(name)) {
      const auto rest = trim(std::string_view(line).substr(name.size()));
      return std::string(rest.substr(0, rest.find_first_of(" \t")));
    }
  }
  return {};
}

bool hasCapability(const std::string& status) {
  const auto bits = parseNumber(valueBehind(status, "CapEff:"), 16);
  return bits && (*bits >> resourceCapability & 1U) != 0;
}

// `libvirtd raises`, or `libvirtd 67108864`.
std::optional<std::string> askLimit(const host::Root& root) {
  for (const char* daemon : daemons) {
    const auto process = processOf(root, daemon);
    if (!process) {
      continue;
    }
    const std::string folder = "proc/" + *process;
    const std::string limit =
        valueBehind(root.readText(folder + "/limits").value_or(""), "Max locked memory");
    if (hasCapability(root.readText(folder + "/status").value_or(""))) {
      return std::string(daemon) + " raises";
    }
    return limit.empty() ? std::nullopt : std::optional(daemon + (" " + limit));
  }
  return std::nullopt;
}

std::uint64_t neededBy(const View& view, const GuestMemory& guest) {
  const std::uint64_t added = view.wishes().vfs.size() + view.wishes().gpus.size();
  const std::uint64_t devices = std::max<std::uint64_t>(guest.devices, added);
  const std::uint64_t memory = std::min(guest.bytes, mostGuestMemory);
  return memory * (guest.viommu ? std::clamp<std::uint64_t>(devices, 1, 64) : 1) + gibibyte;
}

std::string amount(std::uint64_t bytes) { return std::to_string(bytes / mebibyte) + " MiB"; }

void checkDaemonLimit(const View& view, Results& results) {
  const std::string expected = "a daemon that may raise QEMU's limit";
  const auto answer = view.answer("libvirt/memory-lock", [&] { return askLimit(view.root()); });
  if (!answer || answer->find(' ') == std::string::npos) {
    return results.unseen("", expected, "no daemon runs, or not where it is seen",
                          "grep locked /proc/$(pidof libvirtd)/limits");
  }
  const std::string daemon = answer->substr(0, answer->find(' '));
  const std::string limit = answer->substr(answer->find(' ') + 1);
  const auto bytes = parseNumber(limit);
  if (limit == "raises" || limit == "unlimited") {
    results.passed(daemon, expected, limit == "raises" ? "it has CAP_SYS_RESOURCE" : limit);
  } else if (!bytes) {
    results.unseen(daemon, expected, "its limit makes no sense", "");
  } else {
    results.failed(daemon, expected, "no CAP_SYS_RESOURCE, and a limit of " + amount(*bytes),
                   "systemctl edit " + daemon + ": LimitMEMLOCK=infinity; then restart it");
  }
}

// libvirt: what the XML says wins, otherwise RAM (once for each device behind a virtual IOMMU)
// and 1 GiB.
void checkGuestLimit(const View& view, Results& results) {
  const GuestMemory& guest = *view.wishes().guest;
  const std::uint64_t needed = neededBy(view, guest);
  const std::string expected = "no hard_limit, or one of " + amount(needed);
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
  return view.wishes().guest ? "" : "only asked with --vm, of a domain that libvirt knows";
}

constexpr std::array checks{
    Check{"memory-lock", "VFIO pins all of a guest's memory", always, checkDaemonLimit},
    Check{"guest-memory-lock", "a start fails when VFIO may not pin all of the guest's memory",
          withoutGuest, checkGuestLimit}};

}  // namespace

std::span<const Check> memoryLockChecks() { return checks; }

}  // namespace vfpass::doctor
