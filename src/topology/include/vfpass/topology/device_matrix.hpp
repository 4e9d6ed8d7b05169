#pragma once

#include <optional>
#include <string>
#include <vector>

#include "vfpass/guest_tree.hpp"
#include "vfpass/lease.hpp"
#include "vfpass/topology.hpp"
#include "vfpass/topology/distance.hpp"

namespace vfpass::topology {

/// Distances between all devices of one VM.
struct DeviceMatrix {
  std::vector<std::string> names;  ///< the mapping's entries; other devices by address
  /// Square, in the order of `names`; nullopt where one of the two has no place in the tree.
  std::vector<std::vector<std::optional<Distance>>> distances;

  /// The distance between two entries of `names`; also nullopt if one of them is unknown.
  [[nodiscard]] std::optional<Distance> between(const std::string& one,
                                                const std::string& other) const;

  bool operator==(const DeviceMatrix&) const = default;
};

/// The machine's passed devices at their places on the host; at least PIX between two devices.
DeviceMatrix hostMatrix(const GuestMachine& machine, const Topology& host);

/// The same devices at their places in the guest.
DeviceMatrix guestMatrix(const GuestMachine& machine, const Topology& host);

/// The machine with each leased VF replaced by its PF, which exists even while the VFs do not and
/// has the same distances.
GuestMachine withPfs(GuestMachine machine, const std::vector<Lease>& leases);

}  // namespace vfpass::topology
