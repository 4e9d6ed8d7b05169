#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "vfpass/pci_address.hpp"
#include "vfpass/vf_attributes.hpp"

namespace vfpass {

/// Position of a statement in a file, for messages; line and column count from 1.
struct SourcePlace {
  std::string file;
  int line = 0;
  int column = 0;
};

std::string toString(const SourcePlace& place);  ///< `file:line:column`

/// Selects a PF in a mapping. Exactly one member is set.
struct PfSelector {
  std::optional<std::string> netdev;
  std::optional<PciAddress> pci;
  std::optional<std::string> rdma;
  std::optional<std::string> near;         ///< name of a GPU of the same mapping
  std::optional<std::string> serial = {};  ///< of the card, from its VPD
  std::optional<unsigned> function = {};   ///< with `serial`: the PF's PCI function number, 0 to 7

  auto operator<=>(const PfSelector&) const = default;
};

std::string toString(const PfSelector& selector);  ///< `netdev ens1f0np0`, `pci 0000:3b:00.0`, ...

/// Network settings of the VF's netdev in the guest (used by guest-setup, not by attach).
struct GuestNetwork {
  std::optional<std::string> address;  ///< `192.168.100.10/24`
  std::optional<unsigned> mtu;
  std::optional<std::string> name = {};  ///< of the interface, such as `rail0`; empty: any
};

/// One entry of `vfs:`.
struct MappedVf {
  std::string name;  ///< A-Za-z0-9_-; the device's alias in the XML is `ua-vfpass-` + name
  PfSelector pf;
  std::optional<unsigned> index;  ///< empty: auto
  bool macAutomatic = true;       ///< mac: auto (the default); settings.mac is then empty
  bool macKept = false;           ///< mac: keep; settings.mac is then empty
  bool guidsAutomatic = false;    ///< an `infiniband:` block requests derived GUIDs
  bool nodeGuidAutomatic = false;
  bool portGuidAutomatic = false;
  std::set<Attribute> automatic;  ///< further attributes with `auto`, for which attach has a value
  /// The mapping's settings and the safe defaults (trust off, spoof check on, link auto).
  VfSettings settings;
  /// Attributes that the driver must accept: `required:`, by default all that the mapping sets.
  std::set<Attribute> required;
  bool managed = false;  ///< libvirt binds the driver instead of vfpass
  /// Take over the domain's own element for this VF. `settings` then has only what the file states.
  bool adopt = false;
  bool interfaceForm = false;  ///< `<interface type='hostdev'>` instead of `<hostdev>`
  std::optional<std::string> teamingWith;
  bool migrates = false;  ///< `migration: vfio`
  GuestNetwork guest;
  SourcePlace place;
};

/// One entry of `gpus:` or `functions:`: a PCI function that the guest gets whole.
struct MappedFunction {
  std::string name;
  PciAddress pci;
  SourcePlace place;
  std::optional<std::string> driver = {};         ///< VFIO driver; empty: the best match
  std::optional<unsigned> clique = std::nullopt;  ///< x-nv-gpudirect-clique, 0 to 15
  bool adopt = false;                             ///< take over the domain's own element for it
  /// The GPU's module ID on its board with NVSwitches, for the fabric manager, which may not know
  /// its address.
  std::optional<unsigned> nvlinkModule = std::nullopt;
};

/// Risks that a mapping can accept by name.
enum class Allowance {
  sharedIommuGroup,
  trust,
  unsafeInterrupts,
  netdevInUse,
  unknownHolder,
  disruption
};

std::string_view toString(Allowance allowance);  ///< shared-iommu-group, trust, ...
std::optional<Allowance> parseAllowance(std::string_view name);

/// `verify:` of a mapping.
struct VerifyPolicy {
  /// `paths:` lists GPU memory, or only host memory; nullopt: unstated, so it is tested if the VM
  /// has a leased GPU.
  std::optional<bool> gpu;
  std::optional<double> minimumShare;  ///< fraction of the limit, 0 to 1
  bool onStart = false;                ///< verify after each start and report
};

/// `nccl:` of a mapping: NCCL's settings in the guest; empty: NCCL's default.
struct NcclSettings {
  std::optional<unsigned> gidIndex;
  std::optional<unsigned> trafficClass;
  std::optional<unsigned> serviceLevel;
  std::optional<unsigned> queuePairs;  ///< per connection
  std::optional<unsigned> timeout;     ///< exponent: 4.096 us times 2 to this
  /// Further variables by name (`NCCL_...`), none of which the members above or guest-setup set.
  std::map<std::string, std::string> environment = {};

  auto operator<=>(const NcclSettings&) const = default;
};

/// NVLink mode of a guest's GPUs on a board with NVSwitches. Such a GPU initializes only when the
/// fabric is set up, or when its driver disables NVLink (otherwise: CUDA error 802).
enum class NvlinkMode {
  all,        ///< the guest has every GPU and NVSwitch of the board and runs the fabric manager
  partition,  ///< a fabric manager outside the guest activates a partition of these GPUs
  disabled    ///< the guest's driver does not use NVLink (NVreg_NvLinkDisable=1)
};

std::string_view toString(NvlinkMode mode);  ///< all, partition, disabled
std::optional<NvlinkMode> parseNvlinkMode(std::string_view name);

/// `iommu-backend:` of a mapping: how QEMU maps the guest's memory and BARs for its devices.
enum class IommuBackend { automatic, container, iommufd };

std::string_view toString(IommuBackend backend);  ///< auto, container, iommufd
std::optional<IommuBackend> parseIommuBackend(std::string_view name);

/// One `vms/NAME.yaml`, parsed and validated.
struct Mapping {
  std::string file;
  std::string vm;  ///< domain name or UUID, as written
  SourcePlace vmPlace;
  std::vector<MappedVf> vfs;
  std::vector<MappedFunction> functions;
  std::optional<NvlinkMode> nvlink;
  std::set<Allowance> allow;
  std::string topology = "mirror";
  /// Ports of a mirrored tree kept free for hotplug, at each switch and at each host bridge that
  /// has a device directly below it.
  unsigned sparePorts = 0;
  /// `domain-settings: apply`: attach applies the settings that it otherwise only shows.
  bool applyDomainSettings = false;
  std::optional<IommuBackend> iommuBackend = {};  ///< nullopt: unstated, the same as automatic
  /// `link-speeds: host`: root ports of the guest show the speed and width of the host's links.
  bool hostLinkSpeeds = false;
  NcclSettings nccl;
  VerifyPolicy verify;
};

/// The names of all its VFs and functions.
std::set<std::string> entryNames(const Mapping& mapping);

/// One PF of host.yaml.
struct PfPolicy {
  PfSelector pf;
  std::optional<std::string> serial;
  std::optional<unsigned> vfCount;
  std::optional<std::string> eswitchMode;  ///< legacy, switchdev
  std::optional<unsigned> mtu;
  std::optional<bool> up;
  bool probeVfs = false;
  bool allowDisruption = false;  ///< permits steps that disrupt others on the host
  SourcePlace place;
};

/// host.yaml, parsed and validated; empty when there is none.
struct HostPolicy {
  std::string file;
  std::vector<PfPolicy> pfs;
  /// Whether `vfpass host apply` turns MemoryChecks on.
  bool gpuMemoryCheck = false;
};

}  // namespace vfpass
