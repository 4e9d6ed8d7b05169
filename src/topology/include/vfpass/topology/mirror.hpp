#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "vfpass/guest_tree.hpp"
#include "vfpass/lease.hpp"
#include "vfpass/topology.hpp"

namespace vfpass::topology {

/// A device of the mapping to place in the mirrored tree.
struct MirrorDevice {
  std::string name;          ///< the mapping's entry
  std::size_t function = 0;  ///< index in the host's Topology; for a VF, its PF
  /// Its place in the domain's earlier tree; nullopt: it gets a new one.
  std::optional<PciAddress> kept = std::nullopt;
};

struct MirrorInput {
  const Topology& host;
  /// The domain without devices and controllers of vfpass.
  const GuestMachine& guest;
  std::vector<MirrorDevice> devices;
  std::vector<GuestController> earlier;  ///< of all leases of the domain; may contain duplicates
  unsigned sparePorts = 0;  ///< free ports at each switch, and at each host bridge without one
};

/// Why the tree cannot be mirrored.
struct MirrorFault {
  std::string what;
  std::string remedy;
};

struct Mirror {
  std::vector<GuestPlacement>
      placements;  ///< one for each device, in their order; empty if there are faults
  std::vector<std::string> notes;
  std::vector<MirrorFault> faults;
};

/// Places the devices so that every pair has the same distance in the guest as on the host, in the
/// terms of `nvidia-smi topo -m`, with as few controllers as possible:
///
/// - a `pcie-expander-bus` for each host bridge, bound to the guest cell of its NUMA node; in a
///   guest without cells the first host bridge is pcie-root;
/// - a root port for each device or switch directly below it;
/// - a switch where the host has one above the device, or where devices share a slot; a switch
///   below another one where two of them share a host root port (PXB);
/// - each device alone at slot 0, function 0 of its port: NCCL_IB_MERGE_VFS treats any other place
///   as another device.
///
/// The place of an earlier lease is kept, even where a new tree would look different; the notes
/// name each pair whose distance differs for that reason. Indices have no gaps, because libvirt
/// fills them with root ports: a controller that is no longer needed stays while a higher index is
/// in use.
Mirror mirrorTree(const MirrorInput& input);

}  // namespace vfpass::topology
