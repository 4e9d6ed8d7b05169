#pragma once

#include <array>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "vfpass/inventory.hpp"
#include "vfpass/lease.hpp"
#include "vfpass/mac_guid_uuid.hpp"
#include "vfpass/pci_address.hpp"
#include "vfpass/soft_roce.hpp"
#include "vfpass/vf_attributes.hpp"

namespace vfpass {

/// Create VFs on a PF that has none; sriov_drivers_autoprobe is restored right afterwards.
struct CreateVfs {
  PciAddress pf;
  unsigned count = 0;
  bool probe = false;  ///< false: the host driver does not bind to the new VFs
  /// As the inverse of a removal: the value of sriov_drivers_autoprobe afterwards. The PF may then
  /// still have these VFs (the removal never began, or is still running in the kernel). Empty: the
  /// PF has no VFs, and the current value is restored.
  std::optional<bool> autoprobe = std::nullopt;
  /// The PF with the RDMA device of the RoCE LAG that the creation disables; that device disappears
  /// under its users. Empty: there is no LAG.
  std::optional<PciAddress> lagDevicePf = std::nullopt;

  auto operator<=>(const CreateVfs&) const = default;
};

/// Remove every VF of a PF. Refused while one of them is in use or leased.
struct RemoveVfs {
  PciAddress pf;
  /// As an inverse: the value of sriov_drivers_autoprobe before the creation, which stays changed
  /// when the process is killed during it. Empty: left alone.
  std::optional<bool> autoprobe = std::nullopt;

  auto operator<=>(const RemoveVfs&) const = default;
};

/// Settings of one VF within a batch.
struct VfChange {
  unsigned index = 0;
  VfSettings settings;
  std::set<Attribute> required;  ///< if one is refused, the whole batch is rolled back and fails

  auto operator<=>(const VfChange&) const = default;
};

/// Set attributes of VFs of one PF, in as few netlink messages as the kernel allows.
struct ConfigureVfs {
  PciAddress pf;
  std::vector<VfChange> vfs;
  /// For new VFs: the value that every VF of the PF gets where `vfs` states none and the driver
  /// reports another one. Never required. mlx5 accepts MAC, VLAN, spoof check and trust for VFs
  /// that do not exist, and keeps them until the VF is created (mlx5_eswitch_get_vport).
  std::optional<VfSettings> otherwise = std::nullopt;

  auto operator<=>(const ConfigureVfs&) const = default;
};

/// Bind a function to a driver: unbind, set driver_override, probe, read the link back.
struct BindDriver {
  PciAddress function;
  std::string driver;          ///< empty: unbind only
  std::string driverOverride;  ///< the value of driver_override afterwards; empty: cleared
  /// Whether the firmware can save the VF's state afterwards. It takes an unbound VF to change that
  /// (Kernel::migratableVfs()). Empty: as long as mlx5MigrationDriver is bound; otherwise
  /// unchanged. A stated value is one to restore: no fault if devlink shows the VF no more.
  std::optional<bool> migratable = {};

  auto operator<=>(const BindDriver&) const = default;
};

/// Reset a function, so that its next owner finds no state of the previous one.
struct ResetFunction {
  PciAddress function;

  auto operator<=>(const ResetFunction&) const = default;
};

/// Activate the fabric manager's partition that holds exactly these GPUs, or deactivate it if the
/// start of a lease of these GPUs has activated it (Lease::activatedPartition). Which one it is, is
/// looked up at execution.
struct SetPartition {
  std::vector<PciAddress> gpus;
  std::vector<unsigned> modules;  ///< the module IDs of the GPUs
  bool active = false;

  auto operator<=>(const SetPartition&) const = default;
};

/// Insert or replace a lease.
struct RecordLease {
  Lease lease;

  auto operator<=>(const RecordLease&) const = default;
};

/// The device that leaves its domain with the lease, for the record of the hand-over.
struct HandedOver {
  std::string domainName;
  PciAddress device;
  std::optional<unsigned> vfIndex;  ///< empty: a PCI function
  bool infiniband = false;

  auto operator<=>(const HandedOver&) const = default;
};

/// Delete a lease if it still has this generation.
struct DropLease {
  Uuid domain;
  std::string entry;
  std::uint64_t generation = 0;
  /// The lease's, for its lock. nullopt in the journal of an earlier version.
  std::optional<PciAddress> pf = {};
  /// nullopt: the device stays with its domain, or was never given to it.
  std::optional<HandedOver> handedOver = {};

  auto operator<=>(const DropLease&) const = default;
};

/// Make the domain's persistent XML contain exactly the devices of these leases (none: everything
/// that vfpass added is removed). Contains no XML, which would put VNC passwords into the journal.
struct EditDomain {
  Uuid domain;
  std::vector<Lease> leases;
  /// With `leases` empty: the devices of these leases stay, as elements of the domain's own.
  std::vector<Lease> kept = {};

  auto operator<=>(const EditDomain&) const = default;
};

/// Make the metadata of the running domain list exactly these leases (none: it is removed), for
/// release and reconnect. Does nothing when the domain is not running.
struct EditLiveMetadata {
  Uuid domain;
  std::vector<Lease> leases;

  auto operator<=>(const EditLiveMetadata&) const = default;
};

/// Plug a lease's device into the running domain. Does nothing when it is already plugged, or when
/// the domain is not running.
struct PlugDevice {
  Lease lease;

  auto operator<=>(const PlugDevice&) const = default;
};

/// Unplug a lease's device from the running domain and wait until the guest has released it.
struct UnplugDevice {
  Lease lease;

  auto operator<=>(const UnplugDevice&) const = default;
};

/// Set the PF's eswitch mode. Its netdev stays, but loses its link meanwhile.
struct SetEswitchMode {
  PciAddress pf;
  EswitchMode mode = EswitchMode::legacy;

  auto operator<=>(const SetEswitchMode&) const = default;
};

/// Set the MTU of the PF's netdev, whose name and index are looked up at execution.
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

/// Create a SoftRoCE link and record it as created by vfpass. Does nothing when the link exists.
struct AddSoftRoceLink {
  std::string name;
  std::string netdev;

  auto operator<=>(const AddSoftRoceLink&) const = default;
};

/// Remove a SoftRoCE link and its record. Refused while the link is in use.
struct RemoveSoftRoceLink {
  std::string name;
  std::string netdev;
  /// Empty, as the inverse of a creation: the link that vfpass created according to the record.
  std::optional<std::uint32_t> number = std::nullopt;

  auto operator<=>(const RemoveSoftRoceLink&) const = default;
};

/// Record that vfpass created a SoftRoCE link.
struct RecordSoftRoce {
  SoftRoceRecord record;

  auto operator<=>(const RecordSoftRoce&) const = default;
};

/// Delete the record of a SoftRoCE link; the link itself stays.
struct ForgetSoftRoce {
  std::string name;

  auto operator<=>(const ForgetSoftRoce&) const = default;
};

/// Visitor for std::visit with one lambda for each alternative, such as the kinds of actions.
template <typename... Visitors>
struct Overloaded : Visitors... {
  using Visitors::operator()...;
};
template <typename... Visitors>
Overloaded(Visitors...) -> Overloaded<Visitors...>;

using Action = std::variant<CreateVfs, RemoveVfs, ConfigureVfs, BindDriver, ResetFunction,
                            RecordLease, DropLease, EditDomain, EditLiveMetadata, PlugDevice,
                            UnplugDevice, SetEswitchMode, SetMtu, SetLinkUp, AddSoftRoceLink,
                            RemoveSoftRoceLink, RecordSoftRoce, ForgetSoftRoce, SetPartition>;

/// The configurations of a domain that a command changes.
struct Scope {
  bool config = true;  ///< the persistent one: the next start
  bool live = false;   ///< the running domain

  auto operator<=>(const Scope&) const = default;
};

/// One action with its reason and its inverse. Both are plain data, so that the journal can store
/// them and another process can complete or roll back an interrupted plan.
struct Step {
  Action action;
  std::vector<Action> undo;  ///< in execution order; may be empty
  std::string reason;
  bool disrupts = false;  ///< may disrupt others on the host (a netdev disappears, ...)

  auto operator<=>(const Step&) const = default;
};

/// `host` is `host apply`, for one PF or for the SoftRoCE links.
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
  std::vector<std::string> notes;  ///< for the user; they change nothing

  auto operator<=>(const Plan&) const = default;
};

/// One line for people: `bind 0000:01:00.2 to vfio-pci`.
std::string describe(const Action& action);

/// Whether the firmware has to be able to save the VF's state after the action. Empty: the action
/// leaves that as it is. `boundDriver`: the VF's driver before it.
std::optional<bool> migratableAfter(const BindDriver& action, const std::string& boundDriver);

/// The plan's kind and object, for messages; printable: `attach of domain train0`, `host apply of
/// PF 0000:01:00.0`, `host apply of SoftRoCE links`.
std::string describeWork(const Plan& plan);

/// True when the plan needs the lock of the SoftRoCE links.
bool changesSoftRoce(const Plan& plan);

/// PFs whose lock the plan needs, sorted, so that two plans cannot deadlock.
std::vector<PciAddress> lockedPfs(const Plan& plan);

}  // namespace vfpass
