#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "vfpass/inventory.hpp"
#include "vfpass/mac_guid_uuid.hpp"
#include "vfpass/mapping.hpp"
#include "vfpass/pci_address.hpp"
#include "vfpass/vf_attributes.hpp"

namespace vfpass {

/// What one place in a file sets on a PF, or on one of its VFs, when the host boots or the PF
/// appears. Texts come from the file: not printable.
struct BootPolicy {
  std::string file;                 ///< absolute path
  std::string manager;              ///< `netplan`, `NetworkManager`, `systemd`, `script`
  std::optional<PciAddress> pf;     ///< nullopt: the file does not say which PF
  std::optional<unsigned> vf;       ///< nullopt: the PF itself
  std::string text;                 ///< the setting, as in the file: `VLANId=100`
  std::string remedy;               ///< how to end it; may be empty
  VfSettings settings;              ///< of the VF
  std::optional<unsigned> vfCount;  ///< of the PF
  std::optional<std::string> eswitchMode;
  std::optional<unsigned> mtu;
  std::optional<bool> probesVfs;
};

/// What kind of element a domain's XML has for a device of the host.
enum class HandMadeKind {
  hostdev,      ///< `<hostdev type='pci'>`
  interface,    ///< `<interface type='hostdev'>`
  fromNetwork,  ///< `<interface type='network'>`: the network chooses the device at the start
  macvtap,      ///< `<interface type='direct'>`: a macvtap above a netdev of the host
  nvmeDisk,     ///< `<disk type='nvme'>`
  mediated,     ///< `<hostdev type='mdev'>`
  otherBus,     ///< `<hostdev>` of another type (USB, SCSI), or an `<interface>` with a USB adapter
  capability,   ///< `<hostdev mode='capabilities'>`
  arguments     ///< `-device vfio-pci` in `<qemu:commandline>`
};

/// `<teaming>` of a device.
struct HandMadeTeaming {
  std::string type;        ///< `persistent`, `transient`
  std::string persistent;  ///< alias of the partner

  auto operator<=>(const HandMadeTeaming&) const = default;
};

/// A device of the host that somebody has put into a domain's XML, and what the XML says about it.
/// All texts are as in the XML: not printable.
struct HandMadeDevice {
  HandMadeKind kind = HandMadeKind::hostdev;
  std::string form;  ///< for messages: `<hostdev type='usb'>`
  std::string alias;
  std::optional<PciAddress> host;  ///< nullopt: it has none, or an invalid one
  bool managed = false;
  bool ours = false;    ///< has an alias of vfpass
  bool placed = false;  ///< has a PCI address in the guest, as everything that libvirt has defined
  std::optional<MacAddress> mac;
  std::optional<Vlan> vlan;
  std::string vlanFault;  ///< why `<vlan>` cannot be an entry's `vlan:`; empty if it can
  std::string driver;     ///< `<driver name=>`, or `model=` of libvirt 10; empty: the default
  std::optional<HandMadeTeaming> teaming;
  std::string network;  ///< of fromNetwork
  std::string netdev;   ///< of macvtap

  auto operator<=>(const HandMadeDevice&) const = default;
};

/// Why a device of a domain gets no entry in the imported mapping.
enum class LeftOutReason {
  managed,       ///< vfpass has added or leased it
  otherBus,      ///< no PCI function: USB, SCSI, a host's file
  mediated,      ///< a mediated device
  arguments,     ///< in `<qemu:commandline>`, which vfpass does not change
  nvmeDisk,      ///< a disk that QEMU drives itself
  macvtap,       ///< the guest has a macvtap of its netdev, and the host the VF
  network,       ///< a libvirt network chooses it, or has it in its pool
  invalid,       ///< the XML does not say which function it is
  missing,       ///< the host has no such function
  claimedTwice,  ///< two elements of this domain name it
  otherDomain,   ///< another domain names it
  runningOnly,   ///< only the running domain has it
  pf,            ///< a PF
  function,      ///< a function that no guest can have
  driver,        ///< a VF of a driver, or a driver for the device, that vfpass does not know
  settings,      ///< an entry cannot express what it has
  teaming,       ///< its team cannot be an entry's
  quarantine     ///< vfpass gives it to no domain
};

std::string_view toString(LeftOutReason reason);  ///< `managed`, `other-bus`, `claimed-twice`, ...

struct LeftOut {
  std::string form;                  ///< its element: `<hostdev type='pci'>`
  std::optional<PciAddress> device;  ///< nullopt: not a PCI function, or not known
  LeftOutReason reason = LeftOutReason::invalid;
  std::string message;  ///< printable, without the device
  std::string remedy;   ///< may be empty
};

std::string describe(const LeftOut& leftOut);  ///< `<hostdev type='pci'> 0000:3b:00.0: MESSAGE`

/// An entry of `vfs:`.
struct ImportedVf {
  std::string name;
  PciAddress device;
  PciAddress pf;
  std::string pfNetdev;  ///< may be empty
  unsigned index = 0;
  bool infiniband = false;
  bool interfaceForm = false;
  bool managed = false;
  VfSettings settings;                       ///< what the entry states
  std::map<Attribute, std::string> sources;  ///< where each of them is from, printable
  std::optional<std::string> teamingWith;
  std::vector<std::string> notes;  ///< printable lines
};

/// An entry of `gpus:` or `functions:`.
struct ImportedFunction {
  std::string name;
  PciAddress device;
  bool isGpu = false;
  std::string model;   ///< may be empty
  std::string driver;  ///< VFIO driver that the XML names; empty: none
  std::vector<std::string> notes;
};

/// What attach would object to, if it took the devices over now.
struct ImportRefusal {
  std::string message;
  std::string remedy;  ///< may be empty
};

/// The mapping for what a domain has already.
struct ImportedMapping {
  std::vector<ImportedVf> vfs;
  std::vector<ImportedFunction> functions;
  std::map<Allowance, std::string> allow;  ///< with the reason, printable
  std::optional<NvlinkMode> nvlink;
  std::vector<LeftOut> leftOut;
  std::vector<ImportRefusal> refusals;  ///< found by attach's own rules
  /// Settings at boot that concern none of the entries but may concern their VFs.
  std::vector<BootPolicy> unclear;

  [[nodiscard]] bool empty() const { return vfs.empty() && functions.empty(); }
};

/// A PF with the settings that it has now.
struct ImportedPf {
  PciAddress pf;
  std::string netdev;  ///< may be empty
  unsigned vfCount = 0;
  std::string countSource;  ///< a file, if the host has no VFs of it now; empty: the host
  bool probesVfs = false;
  std::optional<EswitchMode> eswitchMode;  ///< empty: not observable
  std::optional<LinkSettings> link;        ///< the same
  std::vector<BootPolicy> policies;        ///< what files set at boot
};

/// The host.yaml for what a host has already.
struct ImportedHost {
  std::vector<ImportedPf> pfs;
  std::vector<BootPolicy> unclear;  ///< the files do not say of which PF
};

}  // namespace vfpass
