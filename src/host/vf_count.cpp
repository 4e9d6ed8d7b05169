#include "vf_count.hpp"

#include <algorithm>
#include <cerrno>

#include "deadline.hpp"
#include "pci_function.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/host/vfio_users.hpp"

namespace vfpass::host {
namespace {

// The kernel only remembers the value, under no lock (sriov_drivers_autoprobe_store).
constexpr std::chrono::milliseconds autoprobeDeadline{5000};
// The links exist when the write returns; this is for drivers that go on in the background.
constexpr std::chrono::milliseconds appearance{2000};

std::string plural(std::size_t count) {
  return std::to_string(count) + (count == 1 ? " VF" : " VFs");
}

void checkCount(const Root& root, const CreateVfs& action, const std::string& name) {
  const auto total = root.readNumber(functionPath(action.pf) + "/sriov_totalvfs");
  if (!total || *total == 0) {
    throw Error(name + ": the device cannot have VFs",
                "Turn on SR-IOV in its firmware (mlxconfig: SRIOV_EN, NUM_OF_VFS) and in the BIOS, "
                "then power-cycle the host.");
  }
  if (action.count == 0 || action.count > *total) {
    throw Error(name + ": " + plural(action.count) + " asked for, but it can have 1 to " +
                    std::to_string(*total) + ": " + errnoText(ERANGE),
                "Ask for fewer, or raise NUM_OF_VFS in the firmware and power-cycle the host.");
  }
  if (const auto present = readVfLinks(root, action.pf).size(); present != 0 && !action.autoprobe) {
    throw Error(name + ": it has " + plural(present) + " already, and their number cannot be " +
                    "changed without removing them all",
                "Use the VFs that are there, or remove them first when nobody uses them.");
  }
}

void writeCount(KernelWriter& writer, const PciAddress& pf, std::size_t count,
                std::chrono::milliseconds deadline) {
  const std::string name = toString(pf);
  try {
    writer.write(functionPath(pf) + "/sriov_numvfs", std::to_string(count), pf, deadline);
  } catch (const WriteError& error) {
    if (error.number() == EBUSY) {
      throw Error(name + ": the driver is busy and changes no VFs now: " + errnoText(EBUSY),
                  "Something else sets up this PF (NetworkManager, netplan, systemd.link, an "
                  "operator, a devlink mode change); let it end or turn it off, then try again.");
    }
    if (error.number() == ENOENT) {
      throw Error(name + ": no driver that makes VFs is bound to it: " + errnoText(ENOENT),
                  "Bind the PF to its own driver (mlx5_core).");
    }
    throw;
  }
}

std::string autoprobePath(const PciAddress& pf) {
  return functionPath(pf) + "/sriov_drivers_autoprobe";
}

// Empty, or why probing could not be set back.
std::string restoreAutoprobe(KernelWriter& writer, const PciAddress& pf, bool before) {
  try {
    setAutoprobe(writer, pf, before);
    return {};
  } catch (const Error& error) {
    return error.what();
  }
}

// Writes the count while probing is as `probe` says. Returns what could not be set back afterwards.
// The kernel takes a count that the PF has already, and a write waits for one that is still under
// way (sriov_numvfs_store), so that the inverse of a removal needs no look at the VFs.
std::string writeCountProbing(const Root& root, KernelWriter& writer, const CreateVfs& action,
                              std::chrono::milliseconds deadline) {
  const bool before =
      action.autoprobe.value_or(root.readNumber(autoprobePath(action.pf)).value_or(1) != 0);
  if (before == action.probe && !action.autoprobe) {
    writeCount(writer, action.pf, action.count, deadline);
    return {};
  }
  setAutoprobe(writer, action.pf, action.probe);
  try {
    writeCount(writer, action.pf, action.count, deadline);
  } catch (const TimeoutError& error) {
    // The kernel reads the setting when it adds each VF (pci_device_can_probe): set back now, it
    // would hand the VFs of a late creation to the host's driver.
    throw TimeoutError(std::string(error.what()) + "; its sriov_drivers_autoprobe stays at " +
                           (action.probe ? "1" : "0") + " for the VFs that may still come",
                       error.remedy());
  } catch (...) {
    restoreAutoprobe(writer, action.pf, before);
    throw;
  }
  return restoreAutoprobe(writer, action.pf, before);
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

}  // namespace

void createVfs(const Root& root, KernelWriter& writer, const CreateVfs& action,
               std::chrono::milliseconds deadline) {
  const std::string name = toString(action.pf);
  checkCount(root, action, name);
  const std::string left = writeCountProbing(root, writer, action, deadline);
  std::size_t present = 0;
  const bool complete = pollUntil(Deadline(std::min(deadline, appearance)), [&] {
    present = readVfLinks(root, action.pf).size();
    return present == action.count;
  });
  if (complete && left.empty()) {
    return;
  }
  if (present != 0) {
    writeCount(writer, action.pf, 0, deadline);
  }
  if (!complete) {
    throw Error(name + ": " + plural(action.count) + " asked for, but only " + plural(present) +
                    " appeared; those were removed again",
                "The kernel log (dmesg) says what ran out: bus numbers (pci=realloc, "
                "pci=assign-busses), BAR space, or the firmware's NUM_OF_VFS.");
  }
  throw Error(name + ": probing could not be put back, the new VFs were removed again: " + left);
}

void setAutoprobe(KernelWriter& writer, const PciAddress& pf, bool on) {
  writer.write(autoprobePath(pf), on ? "1" : "0", pf, autoprobeDeadline);
}

void removeVfs(const Root& root, KernelWriter& writer, const PhysicalFunction& pf,
               const std::vector<Holder>& holders, RemoveScope scope,
               std::chrono::milliseconds deadline) {
  for (const VirtualFunction& vf : pf.vfs) {
    if (const std::string reason = reasonInUse(vf, holders, scope); !reason.empty()) {
      throw Error(toString(pf.address) + ": its VFs cannot be removed: VF " +
                      std::to_string(vf.index) + " (" + toString(vf.address) +
                      ") is in use: " + reason,
                  "Give that VF back first.", ExitCode::refused);
    }
  }
  if (pf.vfs.empty() && scope == RemoveScope::present) {
    return;
  }
  writeCount(writer, pf.address, 0, deadline);
  if (const auto present = readVfLinks(root, pf.address).size(); present != 0) {
    throw Error(toString(pf.address) + ": " + plural(present) + " are still there after removal",
                "The kernel log (dmesg) may say why.");
  }
}

}  // namespace vfpass::host
