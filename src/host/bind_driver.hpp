#pragma once

#include <chrono>
#include <functional>
#include <string>

#include "kernel_write.hpp"
#include "vfpass/host/root.hpp"
#include "vfpass/plan.hpp"

namespace vfpass::host {

/// Loads the module of a driver that is not there yet.
using ModuleLoader = std::function<void(const std::string& module)>;

/// Brings a function to a driver as BindDriver says. Each write gets `deadline`. When the new
/// driver does not take the device, override and old driver are put back before the Error.
void bindDriver(const Root& root, KernelWriter& writer, const ModuleLoader& loadModule,
                const BindDriver& action, std::chrono::milliseconds deadline);

}  // namespace vfpass::host
