#include "drivers/bind_driver.hpp"

#include <optional>
#include <utility>

#include "drivers/driver_override.hpp"
#include "sysfs/pci_function.hpp"
#include "vfpass/base/shell.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/host/vfio_users.hpp"

namespace vfpass::host {
namespace {

// The driver binding of one function.
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
  // Reading takes the device's lock (drivers/pci/pci-sysfs.c).
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
                "look for driverctl or a udev rule that binds it again");
  }
}

// Uses the driver's `bind` file, because `drivers_probe` does not report why a probe failed. With
// the PF's autoprobe off, the kernel only probes a VF that has an override (pci_device_can_probe),
// so the override is always set here.
void Binding::bind(const std::string& driver) {
  setOverride(driver);
  write(driverPath(driver) + "/bind", name_);
  if (const std::string now = this->driver(); now != driver) {
    throw Error(name_ + ": cannot bind to " + driver + ": the device has " +
                    (now.empty() ? "no driver" : "driver " + now) + " afterwards",
                "check the kernel log (dmesg) for the probe failure");
  }
}

void requireDriverName(const std::string& driver, const std::string& name) {
  if (!driver.empty() && !isDriverName(driver)) {
    throw Error(
        name + ": cannot bind to \"" + printable(driver.substr(0, 64)) + "\": invalid driver name",
        "use 1 to 63 characters of A-Z, a-z, 0-9, _ and -");
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
    throw Error(name + ": cannot bind to " + driver + ": PCI driver not loaded",
                "load its module: `modprobe " + shellArgument(driver) + "`");
  }
}

// Restores driver and override. Returns the result as the end of an error message.
std::string rollBack(Binding& binding, const std::string& oldDriver,
                     const std::string& oldOverride) {
  try {
    if (binding.driver() != oldDriver) {
      binding.unbind();
      if (!oldDriver.empty()) {
        binding.bind(oldDriver);
      }
    }
    binding.setOverride(oldOverride);
    return "; the previous driver was restored";
  } catch (const Error& error) {
    return std::string("; cannot restore the previous driver: ") + error.what();
  }
}

void rebind(Binding& binding, const BindDriver& action, const std::string& oldOverride) {
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
    throw Error(binding.name() + ": no such PCI device",
                "list the devices with `vfpass pf list` and `vfpass vf list`");
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
    rebind(binding, action, oldOverride);
  } catch (const TimeoutError&) {
    throw;  // the device's lock is held: any further write would also hang
  } catch (const Error& error) {
    throw Error(error.what() + rollBack(binding, oldDriver, oldOverride), error.remedy(),
                error.code());
  }
}

}  // namespace vfpass::host
