#pragma once

#include <chrono>
#include <exception>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sysfs/kernel_write.hpp"
#include "vfpass/host/root.hpp"
#include "vfpass/pci_address.hpp"
#include "vfpass/plan.hpp"

namespace vfpass::host {

/// Loads the module of a driver that is not loaded yet.
using ModuleLoader = std::function<void(const std::string& module)>;

/// Whether the firmware can save the state of a VF. `set` (setMigratable()) takes an unbound one.
struct MigratableAccess {
  std::function<std::optional<bool>(const PciAddress& vf)> read;  ///< empty: it never can
  std::function<void(const PciAddress& vf, bool migratable)> set;
};

/// Executes BindDriver. `deadline` applies to each write. When the new driver does not bind, the
/// previous driver, override and `migratable` are restored before Error is thrown. `migratable` is
/// used for a VF of which the action states it, or that mlx5MigrationDriver is or was bound to.
void bindDriver(const Root& root, KernelWriter& writer, const ModuleLoader& loadModule,
                const MigratableAccess& migratable, const BindDriver& action,
                std::chrono::milliseconds deadline);

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

/// `driver_override` of each function, empty where none is set; nullopt where it cannot be read:
/// the device is gone, or its lock is held for longer than `deadline` (a driver hangs in probe or
/// remove). Reading takes the device's lock (drivers/pci/pci-sysfs.c), so a guarded child reads the
/// files of all functions.
std::vector<std::optional<std::string>> readDriverOverrides(
    const Root& root, const std::vector<PciAddress>& functions, std::chrono::milliseconds deadline);

/// Whether the function has the file, which then could not be read because its lock is held. False
/// in a captured tree, where a file may be missing or unreadable for any reason.
bool hasDriverOverride(const Root& root, const PciAddress& function);

}  // namespace vfpass::host
