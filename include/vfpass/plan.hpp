#pragma once

#include <array>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "vfpass/identifiers.hpp"
#include "vfpass/lease.hpp"
#include "vfpass/pci_address.hpp"
#include "vfpass/pf_settings.hpp"
#include "vfpass/soft_roce.hpp"
#include "vfpass/vf_settings.hpp"

namespace vfpass {

/// Create VFs on a PF that has none; probing is put back right after.
struct CreateVfs {
  PciAddress pf;
  unsigned count = 0;
  bool probe = false;  ///< false: the host driver is kept off the new VFs
  /// As the inverse of a removal: what sriov_drivers_autoprobe is to be afterwards. The PF may
  /// still have these VFs then (the removal never began, or still runs in the kernel). Empty: the
  /// PF has none, and probing comes back as it is now.
  std::optional<bool> autoprobe = std::nullopt;

  auto operator<=>(const CreateVfs&) const = default;
};

/// Remove every VF of a PF. Refused while one of them is in use or leased.
struct RemoveVfs {
  PciAddress pf;
  /// As an inverse: what sriov_drivers_autoprobe was before the creation, which a process killed in
  /// the middle of it leaves changed. Empty: not touched.
  std::optional<bool> autoprobe = std::nullopt;

  auto operator<=>(const RemoveVfs&) const = default;
};

/// Settings of one VF within a batch.
struct VfChange {
  unsigned index = 0;
  VfSettings settings;
  std::set<Attribute> required;  ///< refused: the whole batch is undone and fails

  auto operator<=>(const VfChange&) const = default;
};

/// Set attributes of VFs of one PF, in as few netlink messages as the kernel allows.
struct ConfigureVfs {
  PciAddress pf;
  std::vector<VfChange> vfs;

  auto operator<=>(const ConfigureVfs&) const = default;
};

/// Bring a function to a driver: unbind, set driver_override, probe, read the link back.
struct BindDriver {
  PciAddress function;
  std::string driver;          ///< empty: leave it without a driver
  std::string driverOverride;  ///< what driver_override shall hold afterwards; empty: cleared

  auto operator<=>(const BindDriver&) const = default;
};

/// Reset a function, so that its next owner finds nothing of the last one.
struct ResetFunction {
  PciAddress function;

  auto operator<=>(const ResetFunction&) const = default;
};

/// Insert or replace a lease.
struct RecordLease {
  Lease lease;

  auto operator<=>(const RecordLease&) const = default;
};

/// Delete a lease if it still has this generation.
struct DropLease {
  Uuid domain;
  std::string vfName;
  std::uint64_t generation = 0;

  auto operator<=>(const DropLease&) const = default;
};

/// Make the domain's persistent XML carry exactly these leases (none: all of ours is taken out).
/// Holds no XML, because that would put VNC passwords into the journal.
struct EditDomain {
  Uuid domain;
  std::vector<Lease> leases;

  auto operator<=>(const EditDomain&) const = default;
};

/// Make the metadata of the running domain name exactly these leases (none: it is taken out), so
/// that release and reconnect find them. Does nothing when the domain does not run.
struct EditLiveMetadata {
  Uuid domain;
  std::vector<Lease> leases;

  auto operator<=>(const EditLiveMetadata&) const = default;
};

/// Plug a lease's device into the running domain. Does nothing when it is there already, or when
/// the domain does not run.
struct PlugDevice {
  Lease lease;

  auto operator<=>(const PlugDevice&) const = default;
};

/// Unplug a lease's device from the running domain and wait until the guest has let go of it.
struct UnplugDevice {
  Lease lease;

  auto operator<=>(const UnplugDevice&) const = default;
};

/// Switch the PF's eswitch mode. Drivers refuse it while there are VFs, and rebuild the netdev.
struct SetEswitchMode {
  PciAddress pf;
  EswitchMode mode = EswitchMode::legacy;

  auto operator<=>(const SetEswitchMode&) const = default;
};

/// Set the MTU of the PF's netdev, whatever its name and index are by then.
struct SetMtu {
  PciAddress pf;
  unsigned mtu = 0;  ///< bytes

  auto operator<=>(const SetMtu&) const = default;
};

/// Bring the PF's netdev up or take it down.
struct SetLinkUp {
  PciAddress pf;
  bool up = false;

  auto operator<=>(const SetLinkUp&) const = default;
};

/// Create a SoftRoCE link and record it as made by vfpass. Does nothing when that link is there.
struct AddSoftRoceLink {
  std::string name;
  std::string netdev;

  auto operator<=>(const AddSoftRoceLink&) const = default;
};

/// Remove a SoftRoCE link and its record. Refused while the link is in use.
struct RemoveSoftRoceLink {
  std::string name;
  std::string netdev;
  /// Empty, as the inverse of a creation: the link that the record says vfpass made.
  std::optional<std::uint32_t> number = std::nullopt;

  auto operator<=>(const RemoveSoftRoceLink&) const = default;
};

/// Write down that vfpass made a SoftRoCE link.
struct RecordSoftRoce {
  SoftRoceRecord record;

  auto operator<=>(const RecordSoftRoce&) const = default;
};

/// Drop the record of a SoftRoCE link; the link itself stays.
struct ForgetSoftRoce {
  std::string name;

  auto operator<=>(const ForgetSoftRoce&) const = default;
};

using Action = std::variant<CreateVfs, RemoveVfs, ConfigureVfs, BindDriver, ResetFunction,
                            RecordLease, DropLease, EditDomain, EditLiveMetadata, PlugDevice,
                            UnplugDevice, SetEswitchMode, SetMtu, SetLinkUp, AddSoftRoceLink,
                            RemoveSoftRoceLink, RecordSoftRoce, ForgetSoftRoce>;

/// Which configuration of a domain a command is about.
struct Scope {
  bool config = true;  ///< the persistent one: the next start
  bool live = false;   ///< the running domain

  auto operator<=>(const Scope&) const = default;
};

/// One action with its reason and its inverse. Both are plain data, so that the journal can hold
/// them and another process can finish or undo what this one began.
struct Step {
  Action action;
  std::vector<Action> undo;  ///< in the order in which they are to run; may be empty
  std::string reason;
  bool disrupts = false;  ///< somebody on the host can notice it (a netdev goes away, ...)

  auto operator<=>(const Step&) const = default;
};

/// `host`: `host apply`, for one PF or for the SoftRoCE links.
enum class PlanKind { attach, detach, prepare, release, host };

inline constexpr std::array planKinds{PlanKind::attach, PlanKind::detach, PlanKind::prepare,
                                      PlanKind::release, PlanKind::host};

std::string_view toString(PlanKind kind);
std::optional<PlanKind> parsePlanKind(std::string_view name);

/// Ordered steps for one domain, or for none (kind host: the nil UUID and an empty name). Empty:
/// nothing to do.
struct Plan {
  PlanKind kind = PlanKind::attach;
  Uuid domain;
  std::string domainName;
  std::vector<Step> steps;
  std::vector<std::string> notes;  ///< said to the user, change nothing

  auto operator<=>(const Plan&) const = default;
};

/// One line for people: `bind 0000:01:00.2 to vfio-pci`.
std::string describe(const Action& action);

/// What the plan is about, for messages, printable: `attach of domain train0`, `host apply of PF
/// 0000:01:00.0`, `host apply of SoftRoCE links`.
std::string describeWork(const Plan& plan);

/// True when the plan needs the lock of the SoftRoCE links.
bool changesSoftRoce(const Plan& plan);

/// PFs whose lock the plan needs, sorted, so that two plans never wait for each other in a circle.
std::vector<PciAddress> lockedPfs(const Plan& plan);

}  // namespace vfpass
