#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "vfpass/diagnosis.hpp"
#include "vfpass/guest_memory.hpp"
#include "vfpass/host/root.hpp"
#include "vfpass/mapping.hpp"
#include "vfpass/peer_mapping.hpp"
#include "vfpass/topology.hpp"
#include "vfpass/topology/nvlink.hpp"

namespace vfpass::doctor {

/// What a mapping's entry wants of one PF.
struct Wish {
  std::string vm;
  std::string entry;
  PciAddress pf;
  bool managed = false;
  bool infiniband = false;
  bool vlan = false;
  std::optional<unsigned> mtu;
  std::vector<std::string> legacyOnly;  ///< attributes it insists on that switchdev mode refuses
  bool teaming = false;
};

/// A device that a mapping names and that is not to be had.
struct MissingDevice {
  std::string subject;  ///< `train0, rail0: near gpu0`
  std::string why;
};

/// What becomes of the NVLink of one VM's GPUs.
struct NvlinkWish {
  std::string vm;
  topology::NvlinkJudgement judgement;
};

/// What the mappings and host.yaml want of this host.
struct Wishes {
  bool oneVm = false;  ///< only these devices are looked at
  std::vector<Wish> vfs;
  std::vector<PciAddress> gpus;
  std::map<PciAddress, unsigned> vfCounts;         ///< host.yaml: virtual-function-count
  std::map<PciAddress, std::string> eswitchModes;  ///< host.yaml: embedded-switch-mode
  std::optional<GuestMemory> guest;                ///< with oneVm, when libvirt knows the domain
  std::optional<PeerMapping> peers;  ///< with oneVm, when the domain has two devices of the host
  /// With oneVm, when it runs with a GPU in a mirrored tree: what guest::checkNcclTopology found;
  /// waived when its agent did not answer.
  std::optional<Finding> ncclTopology;
  std::vector<MissingDevice> missing;
  std::vector<NvlinkWish> nvlink = {};  ///< of VMs with GPUs of a board with NVSwitches
};

/// Finds the devices that the mappings name. With `oneVm` the mappings are those of one VM. What
/// still says `near` (no PF is near enough) is missing.
Wishes wishesOf(const Topology& topology, const std::vector<Mapping>& mappings,
                const HostPolicy& policy, bool oneVm);

/// A wish for everything that there is, so that every check that looks at files does: for a
/// snapshot.
Wishes everyWish(const Topology& topology);

/// What a check asks and this stage cannot: it does not know libvirt. Asked of the running system
/// only.
struct Inquiries {
  /// `9.0.0 7.2.22`, libvirt's version and QEMU's; nullopt when libvirt does not answer.
  std::function<std::optional<std::string>()> hypervisorVersions;
  std::string runDirectory = "run/vfpass";  ///< of this host, relative to its root
  /// Gets every answer of the running system that no file holds, by its name below `vfpass/` in a
  /// captured tree.
  std::map<std::string, std::string>* answers = nullptr;
};

/// Runs every check, in the order of the chain from the processor to the guest: the first that
/// failed is the first broken link. Reads only.
std::vector<Diagnosis> examine(const host::Root& root, const Topology& topology,
                               const Wishes& wishes, const Inquiries& inquiries = {});

/// Whether libvirt's daemon calls hooks. It looks once, when it starts or is reloaded, whether
/// there is any (virHookInitialize).
enum class HookKnowledge {
  noDaemon,      ///< it will look when it starts
  startedAfter,  ///< when it started there was a hook already
  reloaded,      ///< `vfpass hook install` told it to look again
  stale          ///< it started before there was any hook, and vfpass has not reloaded it since
};

/// Of the running system. nullopt: not to be seen, which takes root.
std::optional<HookKnowledge> hookKnowledge(const host::Root& root, const std::string& runDirectory);

/// What `hook install` leaves in the run folder for hookKnowledge once it has reloaded a daemon:
/// which process that was. nullopt: it is gone.
std::optional<std::string> daemonMark(const host::Root& root, const std::string& daemon);
inline constexpr const char* daemonMarkFile = "hook-reloaded";

/// What is looked at of a text file outside sysfs, and all that a snapshot may keep of it. Such
/// files can hold passwords (WLAN keys in netplan's and NetworkManager's files, iSCSI secrets on
/// the kernel's command line): only known settings with their values remain.
std::string essence(std::string_view path, std::string_view content);

}  // namespace vfpass::doctor
