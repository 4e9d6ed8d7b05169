#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "vfpass/holder.hpp"
#include "vfpass/host/root.hpp"
#include "vfpass/pci_address.hpp"
#include "vfpass/peer_mapping.hpp"

namespace vfpass::host {

/// All current holders of these functions (Kernel::findHolders). `deadline` limits each netlink
/// exchange. Empty on a captured tree, because a snapshot contains no processes.
std::vector<Holder> findHolders(const Root& root, const std::vector<PciAddress>& functions,
                                std::chrono::milliseconds deadline);

/// A netdev of a function in another network namespace than ours.
struct NetdevElsewhere {
  PciAddress function;
  std::string netdev;  ///< its name there; printable
  /// `network namespace blue`, `the network namespace of nginx (pid 812)`; printable
  std::string place;

  bool operator==(const NetdevElsewhere&) const = default;
};

/// Looks for netdevs of these functions in the namespaces that this user may enter; needs
/// Linux 5.14, which names the function of a netdev. Empty on a captured tree.
std::vector<NetdevElsewhere> findNetdevsElsewhere(const Root& root,
                                                  const std::vector<PciAddress>& functions,
                                                  std::chrono::milliseconds deadline);

/// Open VFIO files, by the name that udev gives them (`/dev/vfio/12` for a group,
/// `/dev/vfio/devices/vfio3` for a device) whatever name they were opened by, and a process that
/// has them open, as it describes itself; printable: `qemu-system-x86 (pid 4711), guest train0`.
using VfioUsers = std::map<std::string, std::string>;

/// Searches /proc. Opening a group to test for EBUSY instead could make a VM that is starting at
/// that moment fail with EBUSY. Empty on a captured tree, because snapshots contain no processes.
VfioUsers readVfioUsers(const Root& root);

/// The process that holds this function; nullopt: none.
std::optional<std::string> vfioUserOf(const Root& root, const PciAddress& function,
                                      const VfioUsers& users);

/// Whether the running kernel has VFIO containers of type 1 (vfio_iommu_type1). /dev/vfio/vfio does
/// not tell: without them iommufd can register that device, too (CONFIG_IOMMUFD_VFIO_CONTAINER,
/// vfio_misc_dev in drivers/iommu/iommufd/main.c). nullopt: not known, as in a captured tree.
std::optional<bool> hasContainers(const Root& root);

/// The backend through which a process holds this function; nullopt: no holder is observed. A group
/// is taken for a container, also if iommufd backs it (see hasContainers()).
std::optional<VfioBackend> openBackendOf(const Root& root, const PciAddress& function,
                                         const VfioUsers& users);

/// A process that has a function's VFIO group or device open.
struct VfioHolder {
  std::string process;                 ///< its PID
  std::vector<std::string> arguments;  ///< its command line, at most 64 KiB
};

/// Only includes processes that this user may inspect: for root, all processes in this PID
/// namespace and its descendants. Empty on a captured tree.
std::vector<VfioHolder> vfioHolders(const Root& root, const PciAddress& function);

struct Process;

/// Users of one GPU of the host. Both lists are printable and bounded.
struct GpuUsers {
  std::vector<std::string> names;     ///< `the persistence daemon nvidia-persiste (pid 812)`
  std::vector<std::string> remedies;  ///< how to stop them, each once; never recommends kill
};

/// Users of several GPUs, from one scan of /proc.
struct GpuSurvey {
  std::map<PciAddress, GpuUsers> users;  ///< only GPUs with users
  std::string blindSpot;                 ///< what could not be read; empty: everything was read
};

/// Finds users by the device files that processes have open. `gpus` are bound to NVIDIA's driver,
/// `others` to another one, whose device files are in sysfs (`/dev/dri/renderD128`).
GpuSurvey surveyGpus(const Root& root, const std::vector<PciAddress>& gpus,
                     const std::vector<PciAddress>& others = {});

/// A process that uses a GPU, and how to stop it safely.
struct GpuUse {
  std::string who;     ///< `the persistence daemon nvidia-persiste (pid 812)`; printable
  std::string remedy;  ///< an imperative without a full stop; never recommends kill
};

/// Identifies the process by name and control group. A process controls its own name, so this only
/// affects the wording.
GpuUse gpuUseOf(const Root& root, const Process& process);

}  // namespace vfpass::host
