#pragma once

#include <chrono>
#include <functional>
#include <string>

#include "sysfs/kernel_write.hpp"
#include "vfpass/host/root.hpp"
#include "vfpass/plan.hpp"

namespace vfpass::host {

/// Loads the module of a driver that is not loaded yet.
using ModuleLoader = std::function<void(const std::string& module)>;

/// Executes BindDriver. `deadline` applies to each write. When the new driver does not bind, the
/// previous driver and override are restored before Error is thrown.
void bindDriver(const Root& root, KernelWriter& writer, const ModuleLoader& loadModule,
                const BindDriver& action, std::chrono::milliseconds deadline);

}  // namespace vfpass::host
