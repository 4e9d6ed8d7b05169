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

/// An RDMA device as the kernel currently reports it.
struct RdmaLink {
  std::string name;
  bool softRoce = false;  ///< created by rdma_rxe
  std::string netdev;     ///< netdev of a SoftRoCE link; empty for every other device
  /// The kernel's index, assigned once per boot (xa_alloc_cyclic in ib_core); empty on a captured
  /// tree.
  std::optional<std::uint32_t> number;

  auto operator<=>(const RdmaLink&) const = default;
};

/// A SoftRoCE link that vfpass created. It removes no other links.
struct SoftRoceRecord {
  std::string name;
  std::string netdev;
  std::optional<std::uint32_t> number;  ///< empty: recorded before the link was created
  std::string bootId;                   ///< a link does not survive a reboot

  auto operator<=>(const SoftRoceRecord&) const = default;
};

}  // namespace vfpass
