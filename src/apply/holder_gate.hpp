#pragma once

#include <chrono>
#include <set>
#include <vector>

#include "vfpass/apply/tools.hpp"
#include "vfpass/plan/holders.hpp"
#include "vfpass/plan/objection.hpp"

namespace vfpass::apply {

/// Asks the kernel who holds the devices of one plan, before anything is done to them. Leases and
/// journal say who should have a device; a virtual machine that was defined by hand, a container or
/// an RDMA program does not ask them.
class HolderGate {
 public:
  /// Both must outlive it. The risks that the domain's leases accept are read here.
  HolderGate(const Plan& plan, Tools& tools);

  /// Before the plan begins. The domain's own QEMU may hold what the plan unplugs.
  [[nodiscard]] std::vector<plan::Objection> objectionsToPlan();

  /// Immediately before these actions, under the PFs' locks. Waits a moment (Tools::holderPatience)
  /// for holders that release it by themselves: the domain's own QEMU, which closes a device some
  /// time after it has told libvirt that it is unplugged, and an earlier write of vfpass. An action
  /// whose effect is there already is not objected to, unless a write is pending.
  [[nodiscard]] std::vector<plan::Objection> objectionsTo(const std::vector<Action>& actions);

  /// True when the domain's own QEMU has a device open that the plan would touch.
  [[nodiscard]] bool isHeldByOwnGuest() const;

  /// Throws one Error (ExitCode::refused) that names every holder; does nothing without one.
  void require(const std::vector<Action>& actions);

 private:
  enum class Count {
    everyone,
    allButOwnGuest,  ///< its QEMU still has what the plan unplugs
    onlyWhoStays,    ///< neither that nor a pending write
  };
  [[nodiscard]] std::vector<plan::Objection> look(const std::vector<Action>& actions, Count count);
  [[nodiscard]] Plan withoutEffective(const std::vector<Action>& actions,
                                      const plan::VfAddresses& addresses,
                                      const std::vector<Holder>& holders);

  const Plan& plan_;
  Tools& tools_;
  std::set<Allowance> allow_;
  std::set<PciAddress> unplugged_;
};

}  // namespace vfpass::apply
