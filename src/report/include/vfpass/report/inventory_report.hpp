#pragma once

#include <iosfwd>
#include <optional>
#include <vector>

#include "vfpass/device_user.hpp"
#include "vfpass/inventory.hpp"
#include "vfpass/lease.hpp"
#include "vfpass/report/table.hpp"

namespace vfpass::report {

/// `vfpass pf list`: one row per PF, then one line for each PF whose port has a fault
/// (faultOfPort()), and for each of `others`, the NICs without SR-IOV, and for each function that
/// only looks like a NIC. Values that the host cannot observe are `?` in text and
/// null in JSON; `-` means none. JSON: docs/json/pf-list.schema.json.
void writePfs(std::ostream& out, const Inventory& inventory, const std::vector<Device>& others,
              const Style& style);

/// Whom the definitions of domains and networks name as users of VFs; nullopt: unknown.
using DefinedUsers = std::optional<std::vector<DeviceUser>>;

/// `vfpass vf list`: one row per VF of the inventory's PFs, with its lease and its users. The text
/// has a column for users only if there is any. JSON: docs/json/vf-list.schema.json.
void writeVfs(std::ostream& out, const Inventory& inventory, const std::vector<Lease>& leases,
              const DefinedUsers& users, const Style& style);

}  // namespace vfpass::report
