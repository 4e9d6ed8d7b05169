#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>

#include "vfpass/mapping.hpp"

namespace vfpass {

/// One entry of `soft-roce:` in host.yaml: the RDMA device `name` on the netdev.
struct SoftRocePolicy {
  std::string name;
  std::string netdev;
  SourcePlace place;
};

/// An RDMA device as the kernel has it now.
struct RdmaLink {
  std::string name;
  bool softRoce = false;  ///< of the driver rdma_rxe
  std::string netdev;     ///< what a SoftRoCE link sends over; empty for every other device
  /// The kernel's number for it, handed out once a boot (xa_alloc_cyclic in ib_core); empty on a
  /// captured tree.
  std::optional<std::uint32_t> number;

  auto operator<=>(const RdmaLink&) const = default;
};

/// A SoftRoCE link that vfpass made, so that it removes that one and no other.
struct SoftRoceRecord {
  std::string name;
  std::string netdev;
  std::optional<std::uint32_t> number;  ///< empty: it was about to be made
  std::string bootId;                   ///< a link does not outlive the boot it was made in

  auto operator<=>(const SoftRoceRecord&) const = default;
};

}  // namespace vfpass
