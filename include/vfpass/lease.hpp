#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "vfpass/domain_edit.hpp"
#include "vfpass/guest_tree.hpp"
#include "vfpass/identifiers.hpp"
#include "vfpass/mapping.hpp"
#include "vfpass/pci_address.hpp"
#include "vfpass/vf_settings.hpp"

namespace vfpass {

/// How far a lease has come: attach reserves, prepare starts, started runs, release goes back to
/// reserved. Only detach and gc delete a lease.
enum class LeaseState { reserved, starting, running };

std::string_view toString(LeaseState state);
std::optional<LeaseState> parseLeaseState(std::string_view name);

/// What a lease gives away: a VF of a PF, or a PCI function as it is (`gpus:`).
enum class LeaseKind { virtualFunction, pciFunction };

std::string_view toString(LeaseKind kind);  ///< vf, function
std::optional<LeaseKind> parseLeaseKind(std::string_view name);

/// The root port that vfpass adds to a q35 guest for one device.
struct RootPort {
  unsigned index = 0;          ///< controller index; also the guest bus of the device behind it
  PciAddress address;          ///< where the port itself sits, on bus 0
  bool multifunction = false;  ///< function 0 of a slot whose other functions are ours, too

  auto operator<=>(const RootPort&) const = default;
};

/// Where the guest sees the device.
struct GuestPlacement {
  PciAddress address;
  /// Ours, of a flat tree; empty where the device sits behind a port that the guest had already, in
  /// a mirrored tree, and on machines without PCI Express (i440fx).
  std::optional<RootPort> port;
  /// Of a mirrored tree, by index: all controllers of ours between the root bus and the device,
  /// which the domain's other leases may share. One lease of the domain also names the ports that
  /// vfpass adds without a device behind them. Empty: the tree is flat.
  std::vector<GuestController> controllers = {};

  [[nodiscard]] bool isMirrored() const { return !controllers.empty(); }

  auto operator<=>(const GuestPlacement&) const = default;
};

/// What a VF looked like before its first lease; detach restores it.
struct VfOriginal {
  std::string driver;
  std::string driverOverride;
  VfSettings settings;
  /// The PF had no VFs, vfpass made them; the last detach removes them again.
  bool created = false;

  auto operator<=>(const VfOriginal&) const = default;
};

/// "This VF belongs to this domain, under this generation", and all that attach decided. The
/// domain's metadata mirrors it, so that a start needs neither the mapping nor the database.
struct Lease {
  LeaseKind kind = LeaseKind::virtualFunction;
  Uuid domain;
  std::string domainName;  ///< for messages only; names are reused, UUIDs are not
  std::string vfName;      ///< name in the mapping; with `domain` the lease's key
  PciAddress pf;           ///< of a PCI function: its own address, so that its lock is its own
  std::string pfPath;      ///< sysfs path at attach: another one means that the card moved
  std::string pfSerial;    ///< empty where the PF has no VPD serial
  unsigned vfIndex = 0;
  PciAddress vf;
  unsigned vfCount = 0;  ///< VFs of the PF at attach: what prepare creates after a reboot
  bool infiniband = false;
  VfSettings settings;
  std::set<Attribute> required;
  std::set<Allowance> allow;
  bool managed = false;
  bool interfaceForm = false;
  std::optional<std::string> teamingWith;
  std::optional<std::string> vfioDriver;  ///< of a PCI function; empty: vfio-pci
  /// The persistent configuration carries it; false: only the running domain does (`--live`, and
  /// every lease of a transient domain), so that it is for gc once the domain has stopped.
  bool persistent = true;
  GuestPlacement guest;
  /// What attach adds to the domain's persistent XML beside devices. One lease of the domain names
  /// all of it.
  std::vector<DomainEdit> edits = {};
  VfOriginal original;
  std::uint64_t generation = 0;  ///< grows with every attach; a clean-up of an older one is void
  LeaseState state = LeaseState::reserved;  ///< not part of the metadata
  std::string bootId;  ///< boot of the last state change; not part of the metadata

  auto operator<=>(const Lease&) const = default;
};

/// Namespace of our `<metadata>` element in domain XML. Only its presence makes a domain managed.
inline constexpr std::string_view metadataNamespace = "https://vfpass.org/xmlns/domain/1";

/// The lease without what changes after attach or is only for messages (state, boot, the domain's
/// name, whether vfpass made the VFs): as the domain's metadata have it, for comparing.
Lease termsOf(Lease lease);

/// What these leases of one domain add to its XML beside devices.
std::vector<DomainEdit> editsOf(const std::vector<Lease>& leases);

/// What it gives away, for messages: `VF 0 of PF 0000:3b:00.0`, `PCI function 0000:3a:00.0`.
std::string describeDevice(const Lease& lease);

/// The VFIO driver that its device is bound to for the guest.
std::string vfioDriverOf(const Lease& lease);

/// True when both cannot hold: the same VF, the same function, or a PF as a function and its VF.
bool sameDevice(const Lease& one, const Lease& other);

/// How every alias of ours begins; libvirt keeps user aliases only if they begin with `ua-`.
inline constexpr std::string_view aliasPrefix = "ua-vfpass-";

/// Alias of a lease's device in the domain XML: `ua-vfpass-` + name. libvirt drops aliases that do
/// not begin with `ua-` without an error.
std::string deviceAlias(const Lease& lease);
/// Alias of its root port: `ua-vfpass-port-` + name.
std::string portAlias(const Lease& lease);
/// Alias of a controller of the mirrored tree: `ua-vfpass-bus-` + index.
std::string controllerAlias(const GuestController& controller);
/// True for any alias of ours.
bool isOurAlias(std::string_view alias);

}  // namespace vfpass
