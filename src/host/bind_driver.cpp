#include "bind_driver.hpp"

#include <optional>
#include <utility>

#include "driver_override.hpp"
#include "pci_function.hpp"
#include "vfpass/base/shell.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/host/vfio_users.hpp"

namespace vfpass::host {
namespace {

// One function on its way from one driver to another.
class Binding {
 public:
  Binding(const Root& root, KernelWriter& writer, const PciAddress& function,
          std::chrono::milliseconds deadline)
      : root_(root),
        writer_(writer),
        function_(function),
        name_(toString(function)),
        deadline_(deadline) {}

  [[nodiscard]] std::string driver() const { return readDriver(root_, function_); }
  [[nodiscard]] std::string readOverride() const;
  void setOverride(const std::string& driver);
  void unbind();
  void bind(const std::string& driver);
  [[nodiscard]] const std::string& name() const { return name_; }

 private:
  void write(const std::string& path, std::string_view text) {
    writer_.write(path, text, function_, deadline_);
  }

  const Root& root_;
  KernelWriter& writer_;
  PciAddress function_;
  std::string name_;
  std::chrono::milliseconds deadline_;
};

std::string Binding::readOverride() const {
  // Its reader takes the device's lock (drivers/pci/pci-sysfs.c).
  return overrideIn(
      writer_.read(functionPath(function_) + "/driver_override", function_, deadline_));
}

void Binding::setOverride(const std::string& driver) {
  // A lone newline clears it (drivers/base/driver.c, driver_set_override).
  write(functionPath(function_) + "/driver_override", driver + "\n");
}

void Binding::unbind() {
  if (const std::string current = driver(); !current.empty()) {
    write(driverPath(current) + "/unbind", name_);
  }
  if (const std::string current = driver(); !current.empty()) {
    throw Error(name_ + ": still bound to " + current + " after the unbind",
                "Something binds it again at once; look for driverctl or a udev rule.");
  }
}

// By the driver's own `bind`, because `drivers_probe` tells nobody why a probe failed. With the
// PF's autoprobe off the kernel allows it for an overridden VF only (pci_device_can_probe), so the
// override stands in every case while this runs.
void Binding::bind(const std::string& driver) {
  setOverride(driver);
  write(driverPath(driver) + "/bind", name_);
  if (const std::string now = this->driver(); now != driver) {
    throw Error(name_ + ": " + driver + " did not take the device" +
                    (now.empty() ? "" : "; it went to " + now),
                "The kernel log (dmesg) says why the driver's probe failed.");
  }
}

void requireDriverName(const std::string& driver, const std::string& name) {
  if (!driver.empty() && !isDriverName(driver)) {
    throw Error(name + ": cannot be bound to \"" + printable(driver.substr(0, 64)) +
                    "\": not the name of a driver",
                "Driver names have 1 to 63 characters of A-Z, a-z, 0-9, _ and -.");
  }
}

void ensureDriver(const Root& root, const ModuleLoader& loadModule, const std::string& driver,
                  const std::string& name) {
  if (root.exists(driverPath(driver))) {
    return;
  }
  if (isVfioDriver(driver)) {
    loadModule(driver);
  }
  if (!root.exists(driverPath(driver))) {
    throw Error(name + ": cannot be bound to " + driver + ": no such PCI driver is loaded",
                "Load its module: modprobe " + shellArgument(driver));
  }
}

// What stands after a failure: empty when everything is as it was.
std::string undo(Binding& binding, const std::string& oldDriver, const std::string& oldOverride) {
  try {
    if (binding.driver() != oldDriver) {
      binding.unbind();
      if (!oldDriver.empty()) {
        binding.bind(oldDriver);
      }
    }
    binding.setOverride(oldOverride);
    return {};
  } catch (const Error& error) {
    return std::string("; putting it back failed as well: ") + error.what();
  }
}

void move(Binding& binding, const BindDriver& action, const std::string& oldOverride) {
  binding.unbind();
  if (!action.driver.empty()) {
    binding.bind(action.driver);
  }
  const std::string& now = action.driver.empty() ? oldOverride : action.driver;
  if (now != action.driverOverride) {
    binding.setOverride(action.driverOverride);
  }
}

}  // namespace

void bindDriver(const Root& root, KernelWriter& writer, const ModuleLoader& loadModule,
                const BindDriver& action, std::chrono::milliseconds deadline) {
  Binding binding(root, writer, action.function, deadline);
  requireDriverName(action.driver, binding.name());
  requireDriverName(action.driverOverride, binding.name());
  if (!root.exists(functionPath(action.function))) {
    throw Error(binding.name() + ": there is no such PCI device",
                "`vfpass pf list` and `vfpass vf list` show what there is.");
  }
  const std::string oldDriver = binding.driver();
  const std::string oldOverride = binding.readOverride();
  if (oldDriver == action.driver) {
    if (oldOverride != action.driverOverride) {
      binding.setOverride(action.driverOverride);
    }
    return;
  }
  if (!action.driver.empty()) {
    ensureDriver(root, loadModule, action.driver, binding.name());
  }
  try {
    move(binding, action, oldOverride);
  } catch (const TimeoutError&) {
    throw;  // the device's lock is held: every further write would hang as well
  } catch (const Error& error) {
    const std::string left = undo(binding, oldDriver, oldOverride);
    throw Error(error.what() + (left.empty() ? "; it is back as it was" : left), error.remedy(),
                error.code());
  }
}

}  // namespace vfpass::host
