#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "vfpass/host/root.hpp"
#include "vfpass/pci_address.hpp"

namespace vfpass::host {

/// Kernel::identityOf(): `15b3:101d function 0 vf 2 serial MT2012X07812`, or `device-serial` and
/// the serial number in configuration space, which is read first because it costs less. On the
/// running system guarded processes read both: access to a device waits for as long as its reset
/// hangs. `timeout`: of the process that reads configuration space.
std::string readIdentity(const Root& root, const PciAddress& function,
                         const std::optional<std::string>& serial,
                         std::chrono::milliseconds timeout);

/// Kernel::findIdentities().
std::map<std::string, std::vector<PciAddress>> functionsWithIdentities(
    const Root& root, const std::set<std::string>& identities);

}  // namespace vfpass::host
