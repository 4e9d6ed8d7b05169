#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <set>
#include <string>

#include "check.hpp"
#include "remedies.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/host/container_and_guest_names.hpp"
#include "vfpass/host/root.hpp"
#include "view.hpp"

namespace vfpass::doctor {
namespace {

/// Whether a module's file for the running kernel ends in a signature, no matter whose.
enum class Signature { absent, present, unknown };

// Not libkmod: it opens modules by path only, so links in a captured tree could lead out of it.
// The end of every signed module (include/linux/module_signature.h).
constexpr std::string_view marker = "~Module signature appended~\n";

// Where DKMS and OFED's own packages install modules.
constexpr std::array folders{"updates/dkms", "updates", "extra", "extra/mlnx-ofa_kernel/compat"};

struct ModuleFile {
  FileDescriptor file;
  bool compressed = false;
  struct stat status {};
};

std::optional<ModuleFile> find(const View& view, std::string module) {
  const host::Root& root = view.root();
  const std::string release = root.readText("proc/sys/kernel/osrelease").value_or("");
  if (release.empty() || release.find('/') != std::string::npos) {
    return std::nullopt;
  }
  const auto sameName = [&](std::string name) {
    std::ranges::replace(name, '-', '_');
    return name == module + ".ko" || name.starts_with(module + ".ko.");
  };
  for (const char* folder : folders) {
    const std::string path = "lib/modules/" + release + "/" + folder;
    for (const std::string& name : root.list(path)) {
      ModuleFile found{root.open(path + "/" + name, O_RDONLY | O_NONBLOCK), !name.ends_with(".ko")};
      if (sameName(name) && found.file && ::fstat(found.file.get(), &found.status) == 0 &&
          S_ISREG(found.status.st_mode)) {
        return found;
      }
    }
  }
  return std::nullopt;
}

std::optional<std::string> readEnd(const ModuleFile& module) {
  const auto size = static_cast<std::size_t>(module.status.st_size);
  if (module.compressed || size < marker.size()) {
    return std::nullopt;
  }
  return host::readBytes(module.file.get(), size - marker.size(), marker.size());
}

/// `module` as the kernel spells it; the file's name can have `-` for `_`. Compressed files are not
/// read.
Signature signatureOf(const View& view, const std::string& module) {
  const auto answer =
      view.answer("modules/" + module + "/signature", [&]() -> std::optional<std::string> {
        const auto found = find(view, module);
        const auto end = found ? readEnd(*found) : std::nullopt;
        return end ? std::optional<std::string>(*end == marker ? "there" : "none") : std::nullopt;
      });
  return answer == "there"  ? Signature::present
         : answer == "none" ? Signature::absent
                            : Signature::unknown;
}

/// Modification time of that file in seconds since 1970; nullopt if it does not exist or is
/// unreadable.
std::optional<std::uint64_t> buildTime(const View& view, const std::string& module) {
  const auto answer =
      view.answer("modules/" + module + "/built", [&]() -> std::optional<std::string> {
        const auto found = find(view, module);
        return found ? std::optional(std::to_string(found->status.st_mtim.tv_sec)) : std::nullopt;
      });
  return answer ? parseNumber(*answer) : std::nullopt;
}

/// When the two modules for this kernel were built, in seconds since 1970.
struct Built {
  std::uint64_t gpu = 0;
  std::uint64_t ofed = 0;
};

std::optional<Built> built(const View& view) {
  const auto gpu = buildTime(view, "nvidia_peermem");
  const auto ofed = buildTime(view, "mlx_compat");
  return gpu && ofed ? std::optional(Built{*gpu, *ofed}) : std::nullopt;
}

std::string withoutPeerMemory(const View& view) {
  if (const std::string reason = withoutNvidiaGpu(view); !reason.empty()) {
    return reason;
  }
  return view.moduleLoaded("nvidia_peermem") || built(view)
             ? ""
             : "nvidia_peermem is not loaded on the host; guests load it";
}

// For a module that is not loaded, only the files' times are known; copying a module changes them.
void checkBuildOrder(const Built& times, const std::string& remedy, Results& results) {
  const std::string expected = "nvidia_peermem built after OFED's modules";
  if (times.gpu < times.ofed) {
    results.failed("", expected,
                   "its file is " + std::to_string(times.ofed - times.gpu) +
                       " seconds older than OFED's mlx_compat",
                   remedy);
  } else {
    results.passed("", expected, "not loaded; its file is not older than OFED's");
  }
}

// nvidia_peermem registers with OFED only if OFED was installed when it was built.
void checkDriverOrder(const View& view, Results& results) {
  const std::string expected =
      "nvidia_peermem registered with OFED and of the same version as nvidia";
  const std::string remedy =
      "reinstall the GPU driver with its own installer or package, now that OFED is installed";
  if (!view.moduleLoaded("nvidia_peermem")) {
    return checkBuildOrder(built(view).value_or(Built{}), remedy, results);
  }
  const auto versionOf = [&](const std::string& module) {
    return view.root().readText("sys/module/" + module + "/version").value_or("");
  };
  const std::string clients = "sys/kernel/mm/memory_peers";
  const bool registered =
      view.root().exists(clients + "/nv_mem") || view.root().exists(clients + "/nv_mem_nc");
  if (versionOf("nvidia_peermem") != versionOf("nvidia")) {
    results.failed(
        "", expected,
        "nvidia_peermem " + versionOf("nvidia_peermem") + ", nvidia " + versionOf("nvidia"),
        remedy);
  } else if (registered) {
    results.passed("", expected, "registered");
  } else if (view.root().exists(clients)) {
    results.failed("", expected, "OFED has no client nv_mem: nvidia_peermem was built before OFED",
                   remedy);
  } else {
    results.notObservable("", expected, "the kernel's RDMA core does not list peer memory clients",
                          "dmesg | grep -i peermem");
  }
}

// The variable has four bytes of attributes, then one byte that tells whether Secure Boot is on.
std::optional<bool> secureBoot(const View& view) {
  const host::Folder folder(view.root(), "sys/firmware/efi/efivars");
  const std::string value =
      folder ? folder.readBytes("SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c", 0, 5) : "";
  return value.size() == 5 ? std::optional(value[4] == 1) : std::nullopt;
}

bool enforcesSignatures(const View& view) {
  const std::string lockdown = view.root().readText("sys/kernel/security/lockdown").value_or("");
  return secureBoot(view).value_or(false) || view.kernelArgument("module.sig_enforce") ||
         view.moduleFlag("module", "sig_enforce").value_or(false) ||
         lockdown.find("[integrity]") != std::string::npos ||
         lockdown.find("[confidentiality]") != std::string::npos;
}

std::string unlessEnforced(const View& view) {
  return enforcesSignatures(view) ? "" : "neither Secure Boot nor module.sig_enforce is on";
}

// A DKMS package, and a module of it that shows whether the kernel loads them.
struct Package {
  std::string_view dkms;
  std::string_view module;
};

constexpr std::array packages{Package{"nvidia", "nvidia"},
                              Package{"mlnx-ofed-kernel", "mlx_compat"},
                              Package{"nvidia-peer-memory", "nv_peer_mem"}};

void reportUnloaded(const View& view, const std::string& module, const std::string& expected,
                    const std::string& remedy, Results& results) {
  switch (signatureOf(view, module)) {
    case Signature::absent:
      return results.failed(module, expected, "its file has no signature", remedy);
    case Signature::present:
      return results.notObservable(module, expected,
                                   "signed but not loaded: the key may not be enrolled",
                                   "mokutil --test-key " + dkmsCertificate(view));
    case Signature::unknown:
      break;
  }
  results.notObservable(module, expected, "built by DKMS but not loaded",
                        "run `modprobe " + module + "`; if the kernel refuses its key, " + remedy);
}

// In `taint`, E is a module without a valid signature.
void checkSignatures(const View& view, Results& results) {
  const std::string expected = "DKMS modules signed with an enrolled key";
  const std::string remedy =
      "mokutil --import " + dkmsCertificate(view) + ", then reboot and enrol the key";
  bool good = true;
  for (const std::string& package : view.root().list("var/lib/dkms")) {
    for (const Package& known : packages) {
      if (!package.starts_with(known.dkms) || package.starts_with("nvidia-fs")) {
        continue;
      }
      const std::string module(known.module);
      const auto taint = view.root().readText("sys/module/" + module + "/taint");
      if (taint && taint->find('E') != std::string::npos) {
        good = false;
        results.failed(module, expected, "loaded without a valid signature", remedy);
      } else if (!view.moduleLoaded(module)) {
        good = false;
        reportUnloaded(view, module, expected, remedy, results);
      }
    }
  }
  if (good) {
    results.passed("", expected, "no unsigned module");
  }
}

constexpr std::array moduleTable{
    Check{"driver-order", "nvidia_peermem must be built after the OFED that it links to",
          withoutPeerMemory, checkDriverOrder},
    Check{"module-signatures", "the kernel refuses unsigned modules while Secure Boot is on",
          unlessEnforced, checkSignatures}};

}  // namespace

std::span<const Check> moduleChecks() { return moduleTable; }

namespace {

constexpr std::array unitDirectories{"etc/systemd/system", "run/systemd/system",
                                     "usr/lib/systemd/system", "lib/systemd/system"};
constexpr const char* dropIn = "etc/systemd/system/openibd.service.d/vfpass.conf";
constexpr std::size_t namedUsers = 8;

bool hasOpenibd(const View& view) {
  return view.root().exists("etc/init.d/openibd") ||
         std::ranges::any_of(unitDirectories, [&](const std::string& folder) {
           return view.root().exists(folder + "/openibd.service");
         });
}

std::string withoutOpenibd(const View& view) {
  return hasOpenibd(view) ? ""
                          : "no openibd (OFED's service, which unloads the driver when it stops)";
}

// systemd merges the unit with its drop-ins. A later drop-in that says `no` again is not detected.
bool refusesStop(const View& view) {
  const auto isYes = [](const std::string& line) {
    return line.starts_with("refusemanualstop") &&
           std::ranges::any_of(std::array{"yes", "true", "1", "on"},
                               [&](const char* word) { return line.ends_with(word); });
  };
  const auto refuses = [&](const std::string& path) {
    return std::ranges::any_of(view.settings(path), isYes);
  };
  return std::ranges::any_of(unitDirectories, [&](const std::string& folder) {
    const std::string drops = folder + "/openibd.service.d";
    return refuses(folder + "/openibd.service") ||
           std::ranges::any_of(view.root().list(drops), [&](const std::string& name) {
             return refuses(drops + "/" + name);
           });
  });
}

// libvirt starts QEMU with `-name guest=train0,debug-threads=on`.
std::string guestOf(const host::Root& root, const std::string& process) {
  constexpr std::string_view prefix = "guest=";
  const std::string command = host::readCommandLine(root, process);
  const auto at = command.find(prefix);
  if (at == std::string::npos) {
    return "process " + process;
  }
  const auto begin = at + prefix.size();
  const auto end = command.find_first_of(std::string(",\0", 2), begin);
  return printable(command.substr(begin, end - begin));
}

// Guests and processes that have a VFIO group or device open. nullopt without root privileges.
std::optional<std::string> readUsers(const host::Root& root) {
  if (::geteuid() != 0) {
    return std::nullopt;
  }
  std::set<std::string> guests;
  for (const std::string& process : root.list("proc")) {
    const std::string folder = "proc/" + process + "/fd";
    if (!parseNumber(process)) {
      continue;
    }
    for (const std::string& descriptor : root.list(folder)) {
      const std::string target = root.linkTarget(folder + "/" + descriptor).value_or("");
      if (target.starts_with("/dev/vfio/") && target != "/dev/vfio/vfio") {
        guests.insert(guestOf(root, process));
        break;
      }
    }
  }
  return guests.empty() ? "none" : join({guests.begin(), guests.end()}, "\n");
}

std::string usersText(const View& view) {
  const auto answer = view.answer("vfio-users", [&] { return readUsers(view.root()); });
  if (!answer) {
    return "cannot tell which VMs hold VFs";
  }
  auto users = splitLines(*answer);
  if (users == std::vector<std::string>{"none"}) {
    return "no VM holds a VF";
  }
  const auto count = users.size();
  users.resize(std::min(count, namedUsers));
  return "VFs are held by " + join(users, ", ") + (count > namedUsers ? ", ..." : "");
}

void checkStop(const View& view, Results& results) {
  const std::string expected = "openibd refuses manual stops, including those of package updates";
  if (refusesStop(view)) {
    return results.passed("", expected, "RefuseManualStop=yes");
  }
  results.failed("", expected, "it can be stopped or restarted; " + usersText(view),
                 view.root().exists(dropIn)
                     ? "set RefuseManualStop=yes in section [Unit] of /" + std::string(dropIn) +
                           ", then run systemctl daemon-reload"
                     : "mkdir -p /etc/systemd/system/openibd.service.d && printf "
                       "'[Unit]\\nRefuseManualStop=yes\\n' > /" +
                           std::string(dropIn) + " && systemctl daemon-reload");
}

constexpr std::array driverStopTable{
    Check{"driver-stop", "unloading the driver takes the VFs away from running VMs, or hangs",
          withoutOpenibd, checkStop}};

}  // namespace

std::span<const Check> driverStopChecks() { return driverStopTable; }

}  // namespace vfpass::doctor
