#pragma once

#include <optional>
#include <vector>

#include "guest_view.hpp"
#include "vfpass/finding.hpp"
#include "vfpass/lease.hpp"

namespace vfpass::guest {

/// The port through which a lease's data path can be tried.
struct RdmaPort {
  std::string device;
  int number = 1;
  bool software = false;  ///< SoftRoCE: its rate means nothing
  std::optional<double> gigabitsPerSecond;
};

struct DeviceVerdict {
  std::vector<Finding> findings;  ///< ends with the first broken link
  std::optional<RdmaPort> port;   ///< there when nothing is broken
};

/// Layer after layer, from the device to an active port with a GID: is it the leased one, as
/// configured? Pure: the guest's word held against the lease.
DeviceVerdict judgeDevice(const Lease& lease, const GuestView& view);

/// Is there a GPU that RDMA can reach, and by which road? Waived when `wanted` is false and the
/// guest has none.
std::vector<Finding> judgeGpus(const GuestView& view, bool wanted);

}  // namespace vfpass::guest
