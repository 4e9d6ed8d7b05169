#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "vfpass/diagnosis.hpp"
#include "vfpass/host/root.hpp"
#include "vfpass/mapping.hpp"
#include "vfpass/topology.hpp"

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
};

/// What the mappings and host.yaml want of this host.
struct Wishes {
  bool oneVm = false;  ///< only these devices are looked at
  std::vector<Wish> vfs;
  std::vector<PciAddress> gpus;
  std::map<PciAddress, unsigned> vfCounts;  ///< host.yaml: virtual-function-count
  std::vector<std::string> missing;         ///< devices that are named and are not there
};

/// Finds the devices that the mappings name. With `oneVm` the mappings are those of one VM.
Wishes wishesOf(const Topology& topology, const std::vector<Mapping>& mappings,
                const HostPolicy& policy, bool oneVm);

/// A wish for everything that there is, so that every check that looks at files does: for a
/// snapshot.
Wishes everyWish(const Topology& topology);

/// Runs every check, in the order of the chain from the processor to the guest: the first that
/// failed is the first broken link. Reads only.
std::vector<Diagnosis> examine(const host::Root& root, const Topology& topology,
                               const Wishes& wishes);

/// What is looked at of a text file outside sysfs, and all that a snapshot may keep of it. Such
/// files can hold passwords (WLAN keys in netplan's and NetworkManager's files, iSCSI secrets on
/// the kernel's command line): only known settings with their values remain.
std::string essence(std::string_view path, std::string_view content);

}  // namespace vfpass::doctor
