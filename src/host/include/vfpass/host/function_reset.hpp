#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "vfpass/host/root.hpp"
#include "vfpass/kernel.hpp"
#include "vfpass/pci_address.hpp"

namespace vfpass::host {

class KernelWriter;

/// The kernel's methods for resetting the function in sysfs directory `directory` without resetting
/// another one, in the order in which it tries them: `device_specific`, `acpi`, `flr`, `af_flr`,
/// `pm`, `bus`, `cxl_bus`. Empty: there is none. nullopt: not observable (a kernel before 5.15 with
/// at least one method, or a captured tree without the file).
std::optional<std::vector<std::string>> readResetMethods(const Root& root,
                                                         const std::string& directory);

/// Whether one of the methods resets the function only, regardless of other functions on its bus.
bool resetsAlone(const std::vector<std::string>& methods);

/// Resets functions through sysfs, all in parallel. A function without a reset method is skipped,
/// and one whose only method is the reset of a bus that it shares. The failure of a reset that did
/// not finish before the deadline is a TimeoutError.
std::vector<ResetOutcome> resetFunctions(const Root& root, KernelWriter& writer,
                                         const std::vector<PciAddress>& functions,
                                         std::chrono::milliseconds deadline);

}  // namespace vfpass::host
