#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "vfpass/domain_edit.hpp"
#include "vfpass/guest_tree.hpp"
#include "vfpass/mac_guid_uuid.hpp"
#include "vfpass/mapping.hpp"
#include "vfpass/pci_address.hpp"
#include "vfpass/vf_attributes.hpp"

namespace vfpass {

/// State of a lease: attach sets reserved, prepare starting, started running, and release reserved
/// again. Only detach and gc delete a lease.
enum class LeaseState { reserved, starting, running };

std::string_view toString(LeaseState state);
std::optional<LeaseState> parseLeaseState(std::string_view name);

/// The type of leased device: a VF of a PF, or a whole PCI function (`gpus:`, `functions:`).
enum class LeaseKind { virtualFunction, pciFunction };

std::string_view toString(LeaseKind kind);  ///< vf, function
std::optional<LeaseKind> parseLeaseKind(std::string_view name);

/// The root port that vfpass adds to a q35 guest for one device.
struct RootPort {
  unsigned index = 0;          ///< controller index; also the guest bus of the device behind it
  PciAddress address;          ///< of the port itself, on bus 0
  bool multifunction = false;  ///< function 0 of a slot whose other functions are also ours

  auto operator<=>(const RootPort&) const = default;
};

/// Location of the device in the guest.
struct GuestPlacement {
  PciAddress address;
  /// The port that vfpass adds in a flat tree. Empty for a device behind an existing port of the
  /// guest, in a mirrored tree, and on machines without PCI Express (i440fx).
  std::optional<RootPort> port;
  /// In a mirrored tree, by index: all of our controllers between the root bus and the device.
  /// Other leases of the domain may share them. One lease of the domain also lists the ports that
  /// vfpass adds without a device behind them. Empty: the tree is flat.
  std::vector<GuestController> controllers = {};

  [[nodiscard]] bool isMirrored() const { return !controllers.empty(); }

  auto operator<=>(const GuestPlacement&) const = default;
};

/// State of the device before its first lease; detach restores it. A PCI function has no settings.
struct VfOriginal {
  std::string driver;
  std::string driverOverride;
  VfSettings settings;
  /// The PF had no VFs and vfpass created them; the last detach removes them again.
  bool created = false;
  /// Of a VF that gets mlx5MigrationDriver: whether the firmware could save its state. Empty: not
  /// observable; then detach takes that from the VF.
  std::optional<bool> migratable = {};

  auto operator<=>(const VfOriginal&) const = default;
};

/// What the lease of a VF records beyond that of any device.
struct LeasedVf {
  unsigned index = 0;
  unsigned count = 0;  ///< VFs of the PF at attach; prepare creates as many after a reboot
  bool infiniband = false;
  VfSettings settings;
  std::set<Attribute> required;
  /// Optional attributes that the PF's driver refused, or cannot set in its eswitch mode. Not a
  /// term: each start asks the driver again, and the hook cannot change the metadata.
  std::set<Attribute> refused = {};
  bool interfaceForm = false;
  std::optional<std::string> teamingWith;
  /// `migration: vfio`: the VFIO driver that can save and load the VF's state. Empty: vfio-pci,
  /// which cannot.
  std::optional<std::string> migrationDriver = {};

  auto operator<=>(const LeasedVf&) const = default;
};

/// What the lease of a whole PCI function records beyond that of any device.
struct LeasedFunction {
  std::optional<std::string> vfioDriver;  ///< empty: vfio-pci
  /// Of a GPU of a partition that vfpass activates at each start: its module ID.
  std::optional<unsigned> nvlinkModule = {};

  auto operator<=>(const LeasedFunction&) const = default;
};

/// The record that a domain owns a VF or function under a generation, with all decisions of attach.
/// The domain's metadata mirrors it, so that a start needs neither the mapping nor the database.
struct Lease {
  std::variant<LeasedVf, LeasedFunction> part;  ///< what only a VF, or only a PCI function, has
  Uuid domain;
  std::string domainName;  ///< for messages only; names are reused, UUIDs are not
  std::string entry;       ///< its entry in the mapping; together with `domain` the lease's key
  /// The function of the host that the device belongs to: by it the host's properties are looked
  /// up, such as node and place in the PCI tree, and it names the lock. For a PCI function its own
  /// address.
  PciAddress pf;
  std::string pfPath;    ///< sysfs path at attach; a different one means that the card moved
  std::string pfSerial;  ///< empty where the PF has no VPD serial
  PciAddress device;     ///< of the leased device itself, VF or function
  std::set<Allowance> allow;
  bool managed = false;
  /// The device is in the persistent configuration. False: only in the running domain (`--live`,
  /// and every lease of a transient domain), so gc releases it once the domain has stopped.
  bool persistent = true;
  GuestPlacement guest;
  /// Of a device that attach took over (`adopt: true`): the domain's own element for it, byte for
  /// byte. That element stays in the XML as it is, without an alias of ours. Empty: attach adds an
  /// element.
  std::string adoptedElement = {};
  /// The elements other than devices that attach adds to the domain's persistent XML. One lease of
  /// the domain lists them all.
  std::vector<DomainEdit> edits = {};
  VfOriginal original;
  std::uint64_t generation = 0;  ///< grows with every attach; invalidates clean-ups of older ones
  LeaseState state = LeaseState::reserved;  ///< not part of the metadata
  std::string bootId;  ///< boot of the last state change; not part of the metadata
  /// The fabric manager's partition of this GPU was inactive until vfpass activated it for the
  /// current run, so that the stop deactivates it. Not part of the metadata.
  bool activatedPartition = false;

  auto operator<=>(const Lease&) const = default;
};

LeaseKind kindOf(const Lease& lease);
bool isVf(const Lease& lease);

/// The VF's part of its lease. Precondition: isVf(lease); otherwise std::bad_variant_access.
const LeasedVf& vfOf(const Lease& lease);
LeasedVf& vfOf(Lease& lease);

/// Whether the lease is for a VF of this PF, and for the one with this index.
bool isVfOf(const Lease& lease, const PciAddress& pf);
bool isVfOf(const Lease& lease, const PciAddress& pf, unsigned index);

/// The lease of this VF; nullptr if there is none. By PF and index, not by the VF's address:
/// addresses change when a card is added.
const Lease* leaseOfVf(const std::vector<Lease>& leases, const PciAddress& pf, unsigned index);

/// The leases of VFs among these, and those of PCI functions.
std::vector<Lease> vfLeases(std::vector<Lease> leases);
std::vector<Lease> functionLeases(std::vector<Lease> leases);

/// The index of a leased VF; nullopt for a PCI function.
std::optional<unsigned> vfIndexOf(const Lease& lease);

/// True for a VF of a PF that is on InfiniBand.
bool isInfinibandVf(const Lease& lease);

/// The settings of a leased VF; none for a PCI function.
VfSettings settingsOf(const Lease& lease);

/// The same without those that the driver refused: the values that the VF should have.
VfSettings acceptedSettings(const Lease& lease);
/// Those that the driver refused.
std::set<Attribute> refusedAttributes(const Lease& lease);

/// True for an Ethernet VF whose MAC vfpass neither sets nor reads (`mac: keep`).
bool keepsMac(const Lease& lease);

/// True for a device of an element that was in the domain's XML before the lease.
bool isAdopted(const Lease& lease);

/// True when the device is an `<interface>` in the domain XML; a PCI function is a `<hostdev>`.
bool isInterface(const Lease& lease);

/// By what the guest recognizes a VF: its MAC, on InfiniBand its port GUID. Empty for a PCI
/// function and for a VF without a stated address.
std::string guestIdentityOf(const Lease& lease);

/// Namespace of our `<metadata>` element in domain XML. Only its presence makes a domain managed.
inline constexpr std::string_view metadataNamespace = "https://vfpass.org/xmlns/domain/1";

/// The lease without the fields that change after attach or serve only messages (state, boot,
/// domain name, whether vfpass created the VFs or activated the partition, what the driver
/// refused), for comparison with the domain's metadata.
Lease termsOf(Lease lease);

/// The elements other than devices that these leases of one domain add to its XML.
std::vector<DomainEdit> editsOf(const std::vector<Lease>& leases);

/// The leased device, for messages: `VF 0 of PF 0000:3b:00.0`, `PCI function 0000:3a:00.0`.
std::string describeDevice(const Lease& lease);

/// The VFIO driver that the device is bound to for the guest.
std::string vfioDriverOf(const Lease& lease);

/// The VFIO driver of VFs of mlx5 that migrate (drivers/vfio/pci/mlx5, CONFIG_MLX5_VFIO_PCI).
inline constexpr std::string_view mlx5MigrationDriver = "mlx5_vfio_pci";

/// True for a VF that the guest keeps while it migrates (`migration: vfio`).
bool migrates(const Lease& lease);

/// LeasedFunction::nvlinkModule; empty for a VF.
std::optional<unsigned> nvlinkModuleOf(const Lease& lease);

/// True when the leases conflict: the same VF, the same function, or a PF as a function and its VF.
bool sameDevice(const Lease& one, const Lease& other);
/// True when the leases are for the same VF or the same function.
bool isForSameDevice(const Lease& one, const Lease& other);

/// Prefix of all our aliases. libvirt silently drops user aliases that do not begin with `ua-`.
inline constexpr std::string_view aliasPrefix = "ua-vfpass-";

/// Alias of a lease's device in the domain XML: `ua-vfpass-` + name.
std::string deviceAlias(const Lease& lease);
/// Alias of its root port: `ua-vfpass-port-` + name.
std::string portAlias(const Lease& lease);
/// Alias of a controller of the mirrored tree: `ua-vfpass-bus-` + index.
std::string controllerAlias(const GuestController& controller);
/// Alias of the virtio interface that a VF is teamed with (`teaming: {with: net0}`): `ua-net0`.
std::string standbyAlias(const std::string& partner);
/// True for any alias that vfpass assigned.
bool isOurAlias(std::string_view alias);

}  // namespace vfpass
