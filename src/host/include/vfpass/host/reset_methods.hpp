#pragma once

#include <optional>
#include <string>
#include <vector>

#include "vfpass/host/root.hpp"

namespace vfpass::host {

/// How the kernel can reset the function in sysfs folder `folder` without resetting another one, in
/// the order in which it would try: `device_specific`, `acpi`, `flr`, `af_flr`, `pm`, `bus`,
/// `cxl_bus`. Empty: in no way. nullopt: not observable (a kernel before 5.15 that has a way, or a
/// captured tree without the file).
std::optional<std::vector<std::string>> readResetMethods(const Root& root,
                                                         const std::string& folder);

/// Whether one of them concerns the function only, whoever else is on its bus.
bool resetsAlone(const std::vector<std::string>& methods);

}  // namespace vfpass::host
