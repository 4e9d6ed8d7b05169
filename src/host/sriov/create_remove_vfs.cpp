#include "sriov/pf_and_vfs.hpp"

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <iterator>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "vfpass/base/deadline.hpp"
#include "vfpass/base/default_deadlines.hpp"
#include "vfpass/base/pci_files.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/error.hpp"
#include "vfpass/host/find_holders.hpp"
#include "vfpass/host/kernel_log.hpp"
#include "vfpass/host/pci_function.hpp"
#include "vfpass/kernel.hpp"
#include "vfpass/pci_address.hpp"

namespace vfpass::host {
namespace {

constexpr const char* countSetting = "virtual-function-count in host.yaml";

// How to find what the kernel logged about the PF.
std::string searchLog(const PciAddress& pf) {
  return "find the cause in the kernel log: `dmesg | grep " + toString(pf) + "`";
}

// `1 VF`, `4 VFs`.
std::string vfCountText(std::size_t count) {
  return std::to_string(count) + (count == 1 ? " VF" : " VFs");
}

// Where the kernel log names the cause, and what helps against each one.
std::string creationRemedy(const PciAddress& pf) {
  return searchLog(pf) +
         ". \"not enough MMIO resources for SR-IOV\" or \"IOV BARS not allocated\": enable SR-IOV "
         "and Above 4G Decoding in the system's firmware (BIOS); if they are enabled, the kernel "
         "argument pci=realloc lets the kernel enlarge memory windows that the BIOS made too "
         "small. \"bus ... out of range\": enable SR-IOV and ARI in the BIOS, or use a slot below "
         "a port with more bus numbers; on x86 pci=assign-busses lets the kernel number the buses. "
         "Lines of the driver, such as mlx5_core: request fewer VFs "
         "(virtual-function-count in host.yaml). `vfpass doctor` checks the firmware's settings "
         "(sriov-firmware, vf-count) and the memory windows (vf-space)";
}

// sriov_numvfs_store: either no driver is bound, or the driver has no sriov_configure.
Error withoutDriver(const Root& root, const PciAddress& pf, const std::string& what,
                    const std::string& reason) {
  const std::string driver = readDriver(root, pf);
  if (driver.empty()) {
    return Error(what + ": no driver with SR-IOV support is bound: " + reason,
                 "bind the PF to its own driver, such as mlx5_core for a ConnectX");
  }
  return Error(
      what + ": its driver " + printable(driver) + " does not take the count from sysfs: " + reason,
      "use a PF whose driver does (mlx5_core); other drivers have a way of their own, such as "
      "mlx4_core its module parameter num_vfs");
}

// The first lines: a driver reports the cause before its consequences.
std::string quoted(std::vector<std::string> logged) {
  constexpr std::size_t limit = 3;
  logged.resize(std::min(logged.size(), limit));
  return logged.empty() ? std::string{} : "; the kernel log: " + join(logged, "; ");
}

// What each errno can mean: drivers/pci/iov.c (sriov_enable, virtfn_add_bus) and mlx5's
// cmd_status_to_err.
std::string countRemedy(const PciAddress& pf, int error) {
  const std::string fewer = std::string("request fewer VFs (") + countSetting + ")";
  switch (error) {
    case ENOMEM:
      return creationRemedy(pf);
    case ENOSPC:
      return searchLog(pf) +
             ". The driver has too few interrupt vectors (MSI-X) or queues for so "
             "many VFs, or the host too few bus numbers: " +
             fewer;
    case EAGAIN:
      return searchLog(pf) +
             ". The card's firmware has no resources left for so many VFs: " + fewer;
    case EINVAL:
    case EIO:
      return searchLog(pf) + ". If mlx5_core reports a refused firmware command, " + fewer +
             ". If it reports a health error or the log has no line, power-cycle the machine, "
             "which "
             "also makes changed firmware settings effective; `vfpass doctor` compares them "
             "(sriov-firmware, firmware-settings)";
    default:
      return searchLog(pf);
  }
}

// The error for a refused write of `count` to sriov_numvfs. One errno has several causes, which
// only the kernel log distinguishes: the message quotes what was `logged` about the PF meanwhile,
// the remedy says what to look for.
Error countRefused(const Root& root, const PciAddress& pf, std::size_t count,
                   const WriteError& refusal, const std::vector<std::string>& logged) {
  const std::string reason = errnoText(refusal.number());
  const std::string what = toString(pf) + (count == 0 ? ": cannot remove the VFs"
                                                      : ": cannot create " + vfCountText(count));
  switch (refusal.number()) {
    case EBUSY:
      return Error(toString(pf) + ": cannot change the VF count: the driver is busy: " + reason +
                       quoted(logged),
                   "wait until nothing else configures this PF (NetworkManager, netplan, "
                   "systemd.link, an operator, a devlink mode change), then try again");
    case ENOENT:
      return withoutDriver(root, pf, toString(pf) + ": cannot change the VF count", reason);
    case EPERM:
    case EACCES:
    case EROFS:
      return refusal;
    default:
      return Error(what + ": " + reason + quoted(logged),
                   count == 0 ? searchLog(pf) : countRemedy(pf, refusal.number()));
  }
}

// Empty if nothing `logged` about the PF during the creation says that the card's firmware has not
// enabled a VF (ENABLE_HCA). mlx5_core creates such a VF all the same, and the write to
// sriov_numvfs succeeds (mlx5_device_enable_sriov), but no driver can use it.
std::optional<Error> enablingRefused(const PciAddress& pf, std::size_t count,
                                     const std::vector<std::string>& logged) {
  std::vector<std::string> failures;
  std::ranges::copy_if(logged, std::back_inserter(failures), [](const std::string& message) {
    return message.find("failed to enable VF ") != std::string::npos;
  });
  if (failures.empty()) {
    return std::nullopt;
  }
  const std::string which = count == 1
                                ? "it, and it was"
                                : (failures.size() == 1 ? "one" : std::to_string(failures.size())) +
                                      std::string(" of them, and all were");
  return Error(toString(pf) + ": requested " + vfCountText(count) +
                   ", but the card's firmware did not enable " + which + " removed again" +
                   quoted(failures),
               searchLog(pf) + "; request fewer VFs (" + countSetting +
                   "), and if the firmware refuses a single VF, too, power-cycle the machine");
}

void requirePossibleCount(const Root& root, const CreateVfs& action, const std::string& name) {
  const auto total = root.readNumber(functionPath(action.pf) + "/sriov_totalvfs");
  if (!total || *total == 0) {
    throw Error(name + ": cannot create VFs: SR-IOV is disabled or not supported",
                "enable SR-IOV in the NIC's firmware and in the BIOS, then power-cycle the host; "
                "`vfpass doctor` names the setting (sriov-firmware)");
  }
  if (action.count == 0 || action.count > *total) {
    throw Error(name + ": cannot create " + vfCountText(action.count) + ": the PF supports 1 to " +
                    std::to_string(*total) + ": " + errnoText(ERANGE),
                "request fewer VFs, or raise the limit in the NIC's firmware and power-cycle the "
                "host; `vfpass doctor` names the setting (vf-count)");
  }
  if (const auto present = readVfLinks(root, action.pf).size(); present != 0 && !action.autoprobe) {
    throw Error(name + ": cannot create VFs: the PF already has " + vfCountText(present) +
                    ", and the count can only be changed by removing all VFs",
                "use the existing VFs, or remove them first if nothing uses them");
  }
}

// The helper process that writes was killed, such as by the kernel when memory ran out.
bool isUnanswered(const WriteError& error) { return error.number() == ECHILD; }

// What the kernel logged about the PF during the write of a count.
struct Logged {
  std::vector<std::string> messages;
  bool complete = true;  // KernelLog::isComplete()
};

Logged writeCount(const Root& root, KernelWriter& writer, const PciAddress& pf, std::size_t count,
                  std::chrono::milliseconds deadline) {
  KernelLog log(root);
  try {
    writer.write(functionPath(pf) + "/sriov_numvfs", std::to_string(count), pf, deadline);
  } catch (const WriteError& error) {
    // Without the helper's answer, only the VFs show whether the kernel has changed the count.
    if (!isUnanswered(error)) {
      throw countRefused(root, pf, count, error, log.messagesAbout(pf));
    }
  }
  auto messages = log.messagesAbout(pf);
  return {std::move(messages), log.isComplete()};
}

std::string autoprobePath(const PciAddress& pf) {
  return functionPath(pf) + "/sriov_drivers_autoprobe";
}

// Empty, or the reason why sriov_drivers_autoprobe could not be restored.
std::string restoreAutoprobe(KernelWriter& writer, const PciAddress& pf, bool before) {
  try {
    setAutoprobe(writer, pf, before);
    return {};
  } catch (const Error& error) {
    return error.what();
  }
}

void changeAutoprobe(KernelWriter& writer, const PciAddress& pf, bool on) {
  try {
    setAutoprobe(writer, pf, on);
  } catch (const WriteError& error) {
    if (isUnanswered(error)) {
      throw CreationLeft(error.what(), error.remedy());
    }
    throw;
  }
}

struct Creation {
  std::string restoreError;      ///< of restoring sriov_drivers_autoprobe; empty on success
  std::optional<Error> refusal;  ///< although the kernel created the VFs
  bool logged = true;            ///< whether a missing refusal would have been seen
};

// Writes the count with sriov_drivers_autoprobe set to `probe`, and restores the setting. The
// kernel accepts a count that the PF already has, and a write waits for a pending one
// (sriov_numvfs_store), so the inverse of a removal need not check the VFs first.
Creation writeCountProbing(const Root& root, KernelWriter& writer, const CreateVfs& action,
                           std::chrono::milliseconds deadline) {
  Creation creation;
  const auto write = [&] {
    const Logged logged = writeCount(root, writer, action.pf, action.count, deadline);
    creation.refusal = enablingRefused(action.pf, action.count, logged.messages);
    creation.logged = logged.complete;
  };
  const bool before =
      action.autoprobe.value_or(root.readNumber(autoprobePath(action.pf)).value_or(1) != 0);
  if (before == action.probe && !action.autoprobe) {
    write();
    return creation;
  }
  // The setting must have the wanted value for as long as VFs can appear.
  changeAutoprobe(writer, action.pf, action.probe);
  try {
    write();
  } catch (const TimeoutError& error) {
    // The kernel reads the setting for each new VF (pci_device_can_probe). If it were restored now,
    // the host driver would bind to VFs that are created late.
    throw TimeoutError(std::string(error.what()) + "; its sriov_drivers_autoprobe stays at " +
                           (action.probe ? "1" : "0") + " for VFs that may still appear",
                       error.remedy());
  } catch (const Error& error) {
    if (const auto left = restoreAutoprobe(writer, action.pf, before); !left.empty()) {
      throw CreationLeft(
          std::string(error.what()) + "; cannot restore sriov_drivers_autoprobe: " + left,
          error.remedy());
    }
    throw;
  }
  creation.restoreError = restoreAutoprobe(writer, action.pf, before);
  return creation;
}

// Only mlx5_core is known to create VFs that the firmware has not enabled.
std::vector<std::string> doubtsOf(const Root& root, const PciAddress& pf,
                                  const Creation& creation) {
  if (creation.logged || readDriver(root, pf) != "mlx5_core") {
    return {};
  }
  return {toString(pf) +
          ": it is not known whether the card's firmware has enabled every new VF, because the "
          "kernel log cannot be read or has lost lines: `dmesg | grep \"" +
          toString(pf) + ": failed to enable VF\"` lists those that it has not"};
}

bool forbidsRemoval(const Holder& holder, RemoveScope scope) {
  return holder.kind != HolderKind::unknown &&
         (holder.kind != HolderKind::pendingWrite || scope != RemoveScope::inFlight);
}

std::string reasonInUse(const VirtualFunction& vf, const std::vector<Holder>& holders,
                        RemoveScope scope) {
  for (const Holder& holder : holders) {
    if (holder.device == vf.address && forbidsRemoval(holder, scope)) {
      return holder.description;
    }
  }
  if (isVfioDriver(vf.driver)) {
    return "bound to " + vf.driver + (vf.vfioInUse ? " and open in a process" : "");
  }
  for (const Netdev& netdev : vf.netdevs) {
    if (netdev.up || netdev.enslaved) {
      return "its netdev " + netdev.name + (netdev.up ? " is up" : " has a master");
    }
  }
  return {};
}

void removeIncomplete(const Root& root, KernelWriter& writer, const PciAddress& pf,
                      std::size_t present, std::chrono::milliseconds deadline) {
  const auto left = [&](const std::string& reason) {
    return CreationLeft(toString(pf) + ": the creation failed, and " + vfCountText(present) +
                            " cannot be removed again" + reason,
                        searchLog(pf));
  };
  try {
    writeCount(root, writer, pf, 0, deadline);
  } catch (const TimeoutError&) {
    throw;
  } catch (const Error& error) {
    throw left(std::string(": ") + error.what());
  }
  if (!readVfLinks(root, pf).empty()) {
    throw left("");
  }
}

}  // namespace

std::vector<std::string> createVfs(const Root& root, KernelWriter& writer, const CreateVfs& action,
                                   std::chrono::milliseconds deadline,
                                   std::chrono::milliseconds removal) {
  const std::string name = toString(action.pf);
  requirePossibleCount(root, action, name);
  const Creation creation = writeCountProbing(root, writer, action, deadline);
  std::size_t present = 0;
  const bool complete = pollUntil(Deadline(std::min(deadline, deadlines::vfLinks)), [&] {
    present = readVfLinks(root, action.pf).size();
    return present == action.count;
  });
  if (complete && creation.restoreError.empty() && !creation.refusal) {
    return doubtsOf(root, action.pf, creation);
  }
  if (present != 0) {
    removeIncomplete(root, writer, action.pf, present, removal);
  }
  if (!complete) {
    throw Error(name + ": requested " + vfCountText(action.count) + ", but only " +
                    vfCountText(present) + " appeared and were removed again",
                creationRemedy(action.pf));
  }
  if (creation.refusal) {
    throw Error(*creation.refusal);
  }
  throw CreationLeft(
      name + ": cannot restore sriov_drivers_autoprobe, so the new VFs were removed again: " +
      creation.restoreError);
}

void setAutoprobe(KernelWriter& writer, const PciAddress& pf, bool on) {
  writer.write(autoprobePath(pf), on ? "1" : "0", pf, deadlines::autoprobe);
}

void removeVfs(const Root& root, KernelWriter& writer, const PhysicalFunction& pf,
               const std::vector<Holder>& holders, RemoveScope scope,
               std::chrono::milliseconds deadline) {
  for (const VirtualFunction& vf : pf.vfs) {
    if (const std::string reason = reasonInUse(vf, holders, scope); !reason.empty()) {
      throw Error(toString(pf.address) + ": cannot remove the VFs: VF " + std::to_string(vf.index) +
                      " (" + toString(vf.address) + ") is in use: " + reason,
                  "release that VF first", ExitCode::refused);
    }
  }
  if (pf.vfs.empty() && scope == RemoveScope::present) {
    return;
  }
  writeCount(root, writer, pf.address, 0, deadline);
  if (const auto present = readVfLinks(root, pf.address).size(); present != 0) {
    throw Error(
        toString(pf.address) + ": cannot remove the VFs: " + vfCountText(present) + " remain",
        "check the kernel log (dmesg)");
  }
}

}  // namespace vfpass::host
