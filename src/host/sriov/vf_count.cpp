#include "sriov/vf_count.hpp"

#include <algorithm>
#include <cerrno>
#include <optional>

#include "helper/poll_until.hpp"
#include "sriov/count_refusal.hpp"
#include "sysfs/kernel_log.hpp"
#include "sysfs/pci_function.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/deadlines.hpp"
#include "vfpass/host/vfio_users.hpp"
#include "vfpass/kernel.hpp"

namespace vfpass::host {
namespace {

void checkCount(const Root& root, const CreateVfs& action, const std::string& name) {
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

// Returns what the kernel logged about the PF meanwhile.
std::vector<std::string> writeCount(const Root& root, KernelWriter& writer, const PciAddress& pf,
                                    std::size_t count, std::chrono::milliseconds deadline) {
  KernelLog log(root);
  try {
    writer.write(functionPath(pf) + "/sriov_numvfs", std::to_string(count), pf, deadline);
  } catch (const WriteError& error) {
    // Without the helper's answer, only the VFs show whether the kernel has changed the count.
    if (!isUnanswered(error)) {
      throw countRefused(root, pf, count, error, log.messagesAbout(pf));
    }
  }
  return log.messagesAbout(pf);
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
};

// Writes the count with sriov_drivers_autoprobe set to `probe`, and restores the setting. The
// kernel accepts a count that the PF already has, and a write waits for a pending one
// (sriov_numvfs_store), so the inverse of a removal need not check the VFs first.
Creation writeCountProbing(const Root& root, KernelWriter& writer, const CreateVfs& action,
                           std::chrono::milliseconds deadline) {
  const auto refusalIn = [&](const std::vector<std::string>& logged) {
    return enablingRefused(action.pf, action.count, logged);
  };
  const bool before =
      action.autoprobe.value_or(root.readNumber(autoprobePath(action.pf)).value_or(1) != 0);
  if (before == action.probe && !action.autoprobe) {
    return {{}, refusalIn(writeCount(root, writer, action.pf, action.count, deadline))};
  }
  Creation creation;
  changeAutoprobe(writer, action.pf, action.probe);
  try {
    creation.refusal = refusalIn(writeCount(root, writer, action.pf, action.count, deadline));
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

void createVfs(const Root& root, KernelWriter& writer, const CreateVfs& action,
               std::chrono::milliseconds deadline, std::chrono::milliseconds removal) {
  const std::string name = toString(action.pf);
  checkCount(root, action, name);
  const Creation creation = writeCountProbing(root, writer, action, deadline);
  std::size_t present = 0;
  const bool complete = pollUntil(Deadline(std::min(deadline, deadlines::vfLinks)), [&] {
    present = readVfLinks(root, action.pf).size();
    return present == action.count;
  });
  if (complete && creation.restoreError.empty() && !creation.refusal) {
    return;
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
