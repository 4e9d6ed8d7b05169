#pragma once

#include <exception>
#include <functional>
#include <vector>

#include "vfpass/host/root.hpp"
#include "vfpass/plan.hpp"

namespace vfpass::host {

/// Number of functions that are bound at the same time. Most of the time the kernel takes to unbind
/// a VF from its NIC driver is waiting (RCU grace periods of the netdev, firmware commands).
inline constexpr std::size_t bindingWorkers = 8;

/// Performs one action with the resources of worker `worker` (0 to bindingWorkers - 1).
using BindOne = std::function<void(const BindDriver& action, std::size_t worker)>;

/// Binds different functions, VFs in parallel. Other functions are bound one after another, before
/// the VFs: GPU drivers take locks of the whole driver in unbind, and functions that share an IOMMU
/// group depend on each other. The result has, in the same order, null or the exception.
std::vector<std::exception_ptr> bindDrivers(const Root& root,
                                            const std::vector<BindDriver>& actions,
                                            const BindOne& bindOne);

}  // namespace vfpass::host
