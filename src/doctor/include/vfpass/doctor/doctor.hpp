#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "vfpass/confidential_guest.hpp"
#include "vfpass/domain_facts.hpp"
#include "vfpass/finding.hpp"
#include "vfpass/hand_over.hpp"
#include "vfpass/host/root.hpp"
#include "vfpass/imported_mapping.hpp"
#include "vfpass/lease.hpp"
#include "vfpass/mapping.hpp"
#include "vfpass/peer_mapping.hpp"
#include "vfpass/topology.hpp"
#include "vfpass/topology/nvlink_topology.hpp"

namespace vfpass::doctor {

/// What one entry of a mapping requires of a PF.
struct Requirement {
  std::string vm;
  std::string entry;
  PciAddress pf;
  bool managed = false;
  bool infiniband = false;
  bool vlan = false;
  std::optional<unsigned> mtu;
  std::vector<std::string> legacyOnly;  ///< required attributes that switchdev mode refuses
  bool teaming = false;
  std::optional<unsigned> index = {};  ///< of the VF, if the entry names it
  bool migration = false;              ///< `migration: vfio`
};

/// A device that a mapping names and the host lacks.
struct MissingDevice {
  std::string subject;  ///< `train0, rail0: near gpu0`
  std::string why;
};

/// How the NVLinks of one VM's GPUs are set up.
struct NvlinkRequirement {
  std::string vm;
  topology::NvlinkJudgement judgement;
  /// A lease of the VM has no module ID of its GPU, so that no start activates the partition.
  bool unrecorded = false;
};

/// A domain with a GPU in a mirrored tree.
struct MirroredGuest {
  std::string domain;                       ///< its name
  std::vector<std::string> behindSwitches;  ///< entries of the mapping
  /// If it runs: what verify::judgeNcclTopology found; waived if the agent did not respond. Empty
  /// as well if the guest has no file, and no device is behind a switch.
  std::optional<Finding> topologyFile = {};
};

/// A unit of systemd that has to be enabled.
struct RequiredUnit {
  std::string name;  ///< `vfpass-verify.path`
  std::string why;   ///< `VM train0 is verified after each start`
};

/// What the mappings and host.yaml require of this host.
struct Requirements {
  bool oneVm = false;  ///< examine only these devices
  std::vector<Requirement> vfs;
  std::vector<PciAddress> functions;               ///< whole functions: GPUs and others
  std::map<PciAddress, unsigned> vfCounts;         ///< host.yaml: virtual-function-count
  std::map<PciAddress, std::string> eswitchModes;  ///< host.yaml: embedded-switch-mode
  std::optional<GuestMemory> guest;                ///< with oneVm, if the domain exists
  /// With oneVm, of a domain with two devices of the host; also what a mapping loses from the next
  /// start on.
  std::vector<PeerMapping> peers;
  std::vector<IommufdUse> iommufd = {};  ///< by the mappings; with oneVm also by the domain
  std::optional<ConfidentialGuest> confidential = {};  ///< with oneVm and `<launchSecurity>`
  std::optional<MirroredGuest> mirrored = {};  ///< with oneVm, if the domain has such a tree
  std::vector<MissingDevice> missing;
  std::vector<NvlinkRequirement> nvlink = {};  ///< of VMs with GPUs of a board with NVSwitches
  std::vector<PciAddress> policyPfs = {};      ///< PFs with an entry in host.yaml
  std::vector<PciAddress> leased = {};         ///< PFs and whole functions with a lease
  /// Devices that no VM gets, with where they are now; nullopt: not known.
  std::optional<std::vector<QuarantinedDevice>> quarantined = {};
  std::vector<RequiredUnit> units = {};
  /// The user's selection. If there is one, only these devices count as used.
  std::vector<PciAddress> selected = {};
};

/// Finds the devices that the mappings name. With `oneVm` the mappings are those of one VM. An
/// entry that still has `near` (no PF is near enough) is missing.
Requirements requirementsOf(const Topology& topology, const std::vector<Mapping>& mappings,
                            const HostPolicy& policy, bool oneVm);

/// Adds what the leases of the host say of the required devices.
void addLeases(const std::vector<Lease>& leases, Requirements& requirements);

/// Requires everything that the host has, so that every check reads its files. For snapshots.
Requirements requireEverything(const Topology& topology);

/// Queries that the caller answers, because this stage does not use libvirt. Only for the running
/// system.
struct Inquiries {
  /// `9.0.0 7.2.22`, libvirt's version and QEMU's; nullopt if libvirt does not respond.
  std::function<std::optional<std::string>()> hypervisorVersions;
  /// Whether mstconfig may ask the cards for their firmware's settings, which takes up to seconds
  /// each. In a captured tree the recorded answers are used.
  bool queriesFirmware = true;
  std::string runDirectory = "run/vfpass";  ///< of this host, relative to its root
  /// Called before each check, with its name: some take seconds.
  std::function<void(std::string_view)> onCheck = [](std::string_view) {};
  /// Receives every answer of the running system that no file holds, by its name below `vfpass/` in
  /// a captured tree.
  std::map<std::string, std::string>* answers = nullptr;
};

/// In a captured tree, below `vfpass/`: libvirt did not tell the versions when it was taken.
inline constexpr const char* versionsNotObserved = "libvirt/versions-not-observed";

/// Runs every check, in the order of the chain from the processor to the guest: the first failure
/// is the first broken link. Changes nothing.
std::vector<Diagnosis> examine(const host::Root& root, const Topology& topology,
                               const Requirements& requirements, const Inquiries& inquiries = {});

/// Marks the failures and warnings that host.yaml accepts; `today` as 2027-01-31.
void acceptFindings(const std::vector<AcceptedFinding>& accepted, const std::string& today,
                    std::vector<Diagnosis>& diagnoses);

/// The names of all checks, in their order.
std::vector<std::string> checkNames();

/// Whether libvirt finds the qemu hook: a link in `qemu.d` to a program that exists.
bool isHookInstalled(const host::Root& root);

/// Whether systemd manages this host; units of others have no effect.
bool hasSystemd(const host::Root& root);

/// Whether systemd starts the unit at boot: a target of the system's configuration wants it.
bool isEnabled(const host::Root& root, const std::string& unit);

/// Whether libvirt's daemon calls hooks. It checks for hooks only when it starts or is reloaded
/// (virHookInitialize).
enum class HookKnowledge {
  noDaemon,      ///< it will check when it starts
  startedAfter,  ///< a hook was installed before it started
  reloaded,      ///< `vfpass hook install` reloaded it
  stale          ///< it started before any hook was installed, and vfpass has not reloaded it
};

/// For the running system. nullopt if it cannot be determined, which may need root.
std::optional<HookKnowledge> hookKnowledge(const host::Root& root, const std::string& runDirectory);

/// Identifies the daemon's process. `hook install` writes this to the run directory after it has
/// reloaded the daemon, for hookKnowledge. nullopt if the daemon is not running.
std::optional<std::string> daemonMark(const host::Root& root, const std::string& daemon);
inline constexpr const char* daemonMarkFile = "hook-reloaded";

/// Reduces a text file outside sysfs to the settings that doctor knows, with their values. Checks
/// see nothing else and snapshots keep nothing else, because such files can hold passwords (WLAN
/// keys in the files of netplan and NetworkManager, iSCSI secrets on the kernel command line). The
/// check of boot scripts reads whole files and keeps only its finding (View::derived).
std::string knownSettings(std::string_view path, std::string_view content);

/// What the files of netplan, NetworkManager and systemd, and the scripts that run at boot, set on
/// PFs and their VFs, in this order. Each has the remedy of doctor's check of that file. A captured
/// tree has only what doctor keeps of these files (knownSettings()).
std::vector<BootPolicy> bootPolicies(const host::Root& root, const Topology& topology);

}  // namespace vfpass::doctor
