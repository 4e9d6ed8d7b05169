#pragma once

#include <chrono>
#include <set>
#include <vector>

#include "vfpass/apply/run.hpp"
#include "vfpass/plan/judge_holders.hpp"
#include "vfpass/plan/objection.hpp"

namespace vfpass::apply {

/// Asks the kernel for the holders of the devices of one plan before it changes them. Leases and
/// journal say who should hold a device; a manually defined VM, a container or an RDMA program can
/// hold it regardless.
class HolderGate {
 public:
  /// Both must outlive the gate. Reads the risks that the leases of the domain accept.
  HolderGate(const Plan& plan, Tools& tools);

  /// Check before the plan begins. The domain's own QEMU may still hold devices that the plan
  /// unplugs.
  [[nodiscard]] std::vector<plan::Objection> objectionsToPlan();

  /// Check immediately before these actions, under the PF locks. Waits briefly
  /// (Tools::holderTimeout) for holders that release the device by themselves: the domain's own
  /// QEMU, which closes a device some time after it has reported the unplug to libvirt, and an
  /// earlier write of vfpass. Accepts an action that is already in effect, unless a write is
  /// pending.
  [[nodiscard]] std::vector<plan::Objection> objectionsTo(const std::vector<Action>& actions);

  /// The same without waiting, and without those that release the device by themselves.
  [[nodiscard]] std::vector<plan::Objection> objectionsOfOthersTo(
      const std::vector<Action>& actions);

  /// True if the domain's own QEMU has a device open that the plan would change.
  [[nodiscard]] bool isHeldByOwnGuest() const;

  /// Throws one Error (ExitCode::refused) that names every holder; does nothing if there is none.
  void require(const std::vector<Action>& actions);

  /// The same before the first of several actions. The domain's own QEMU may still hold devices
  /// that one of them unplugs.
  void requireToBegin(const std::vector<Action>& actions);

  /// From now on, the actions are inverses. They unplug what the plan has plugged into the running
  /// guest, and do not configure it before: the guest would get the host's MAC and VLAN.
  void turnBack();

 private:
  enum class Count {
    everyone,
    allButOwnGuest,  ///< ignores its QEMU for devices that the plan unplugs
    onlyWhoStays,    ///< also ignores pending writes
  };
  [[nodiscard]] std::vector<plan::Objection> look(const std::vector<Action>& actions, Count count);
  [[nodiscard]] std::vector<plan::Objection> lookUntilFree(const std::vector<Action>& actions,
                                                           Count count);
  [[nodiscard]] Plan withoutEffective(const std::vector<Action>& actions,
                                      const plan::VfAddresses& addresses,
                                      const std::vector<Holder>& holders);

  const Plan& plan_;
  Tools& tools_;
  std::set<Allowance> allow_;
  std::set<PciAddress> unplugged_;
  std::set<PciAddress> takenBack_;  // plugged by the plan, if its inverses run
};

}  // namespace vfpass::apply
