#include "drivers/driver_binding.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <functional>
#include <system_error>
#include <thread>

#include "helper/guarded_child.hpp"
#include "vfpass/base/deadline.hpp"
#include "vfpass/base/pci_files.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/host/find_holders.hpp"
#include "vfpass/host/pci_function.hpp"
#include "vfpass/lease.hpp"

namespace vfpass::host {
namespace {

using Overrides = std::vector<std::optional<std::string>>;

constexpr std::size_t recordSize = 256;

// The driver in the text of a `driver_override` file; empty where none is set. Without an override
// the kernel prints a null pointer: "(null)".
std::string overrideIn(std::string_view text) {
  const auto value = trim(text);
  return value == "(null)" ? std::string{} : std::string(value);
}

// Writes one record of fixed size for each path, in order, so that the parent can count them. The
// first byte is the result of the read. Runs in the child: must not allocate.
void readRecords(int pipe, int base, const std::vector<std::string>& paths, std::size_t first) {
  for (std::size_t i = first; i < paths.size(); ++i) {
    std::array<char, recordSize> record{};
    const int file = ::openat(base, paths[i].c_str(), O_RDONLY | O_CLOEXEC);
    const ssize_t count = file < 0 ? -1 : ::read(file, record.data() + 1, record.size() - 2);
    if (file >= 0) {
      ::close(file);
    }
    record[0] = count < 0 ? 'n' : 'y';
    writeAll(pipe, record.data(), record.size());
  }
}

void takeRecords(const std::string& bytes, std::size_t first, Overrides& overrides) {
  for (std::size_t i = 0; (i + 1) * recordSize <= bytes.size(); ++i) {
    const char* record = bytes.data() + i * recordSize;
    if (record[0] == 'y') {
      overrides[first + i] = overrideIn(record + 1);  // always zero-terminated
    }
  }
}

Overrides readGuarded(const Root& root, const std::vector<std::string>& paths,
                      std::chrono::milliseconds timeout) {
  Overrides overrides(paths.size());
  const FileDescriptor base = root.open(".", O_PATH | O_DIRECTORY);
  const Deadline total(3 * timeout);
  std::size_t next = 0;
  // A device that hangs is skipped; the next child continues after it.
  while (next < paths.size() && !total.over()) {
    const auto reply = runGuarded(
        timeout, base.get(), [&, next](int pipe) { readRecords(pipe, base.get(), paths, next); });
    takeRecords(reply.bytes, next, overrides);
    next += reply.bytes.size() / recordSize + 1;
  }
  return overrides;
}

// The child's reads are not recorded automatically.
void noteOverrides(const Root& root, const std::vector<PciAddress>& functions,
                   const Overrides& overrides) {
  for (std::size_t i = 0; root.recording() != nullptr && i < functions.size(); ++i) {
    const FileDescriptor directory = root.open(functionPath(functions[i]), O_PATH | O_DIRECTORY);
    if (directory && overrides[i]) {
      root.recording()->noteText(directory.get(), "driver_override",
                                 (overrides[i]->empty() ? "(null)" : *overrides[i]) + "\n");
    }
  }
}

}  // namespace

bool hasDriverOverride(const Root& root, const PciAddress& function) {
  return root.isLive() && root.exists(functionPath(function) + "/driver_override");
}

Overrides readDriverOverrides(const Root& root, const std::vector<PciAddress>& functions,
                              std::chrono::milliseconds deadline) {
  std::vector<std::string> paths;
  for (const PciAddress& function : functions) {
    paths.push_back(functionPath(function) + "/driver_override");
  }
  if (root.isLive()) {
    auto found = readGuarded(root, paths, deadline);
    noteOverrides(root, functions, found);
    return found;
  }
  Overrides overrides;
  for (const std::string& path : paths) {
    const auto text = root.readText(path);
    overrides.push_back(text ? std::optional(overrideIn(*text)) : std::nullopt);
  }
  return overrides;
}

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
  /// Binds to this driver; empty: to none.
  void rebind(const std::string& driver);
  [[nodiscard]] const std::string& name() const { return name_; }
  /// Called while the function is unbound.
  std::function<void()> whileUnbound = [] {};

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

void Binding::rebind(const std::string& driver) {
  unbind();
  whileUnbound();
  if (!driver.empty()) {
    bind(driver);
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

/// Whether the firmware can save the VF's state, before and after an action.
struct MigratableChange {
  std::optional<bool> wanted;  ///< empty: the action has nothing to do with it
  std::optional<bool> before;  ///< empty: it never can, or not observable

  [[nodiscard]] bool differs() const { return wanted && before && *wanted != *before; }
};

MigratableChange changeOf(const BindDriver& action, const std::string& oldDriver,
                          const MigratableAccess& access) {
  MigratableChange change{migratableAfter(action, oldDriver), {}};
  if (change.wanted) {
    change.before = access.read(action.function);
  }
  // What is restored, a VF cannot have any more that was made again in legacy mode.
  if (action.migratable && !change.before) {
    change.wanted.reset();
  }
  return change;
}

/// What a function had before an action.
struct EarlierBinding {
  std::string driver;
  std::string driverOverride;
};

// Restores driver, override and `migratable`. Returns the result as the end of an error message.
std::string rollBack(Binding& binding, const EarlierBinding& earlier, bool changedFirmware) {
  try {
    if (changedFirmware || binding.driver() != earlier.driver) {
      binding.rebind(earlier.driver);
    }
    binding.setOverride(earlier.driverOverride);
    return "; the previous driver was restored";
  } catch (const Error& error) {
    return std::string("; cannot restore the previous driver: ") + error.what();
  }
}

void execute(Binding& binding, const BindDriver& action, const std::string& oldOverride) {
  binding.rebind(action.driver);
  const std::string& now = action.driver.empty() ? oldOverride : action.driver;
  if (now != action.driverOverride) {
    binding.setOverride(action.driverOverride);
  }
}

}  // namespace

void bindDriver(const Root& root, KernelWriter& writer, const ModuleLoader& loadModule,
                const MigratableAccess& migratable, const BindDriver& action,
                std::chrono::milliseconds deadline) {
  Binding binding(root, writer, action.function, deadline);
  requireDriverName(action.driver, binding.name());
  requireDriverName(action.driverOverride, binding.name());
  if (!root.exists(functionPath(action.function))) {
    throw Error(binding.name() + ": no such PCI device",
                "list the devices with `vfpass pf list` and `vfpass vf list`");
  }
  const EarlierBinding earlier{binding.driver(), binding.readOverride()};
  const MigratableChange change = changeOf(action, earlier.driver, migratable);
  if (earlier.driver == action.driver && !change.differs()) {
    if (earlier.driverOverride != action.driverOverride) {
      binding.setOverride(action.driverOverride);
    }
    return;
  }
  if (!action.driver.empty()) {
    ensureDriver(root, loadModule, action.driver, binding.name());
  }
  bool changed = false;
  if (change.wanted) {
    binding.whileUnbound = [&] {
      changed = change.differs();
      migratable.set(action.function, *change.wanted);
    };
  }
  try {
    execute(binding, action, earlier.driverOverride);
  } catch (const TimeoutError&) {
    throw;  // the device's lock is held: any further write would also hang
  } catch (const Error& error) {
    if (change.wanted) {
      binding.whileUnbound = [&] {
        migratable.set(action.function, change.before.value_or(false));
      };
    }
    throw Error(error.what() + rollBack(binding, earlier, changed), error.remedy(), error.code());
  }
}

std::vector<std::exception_ptr> bindDrivers(const Root& root,
                                            const std::vector<BindDriver>& actions,
                                            const BindOne& bindOne) {
  std::vector<std::exception_ptr> failures(actions.size());
  const auto attempt = [&](std::size_t at, std::size_t worker) {
    try {
      bindOne(actions[at], worker);
    } catch (...) {
      failures[at] = std::current_exception();
    }
  };
  // Everything else first, one after another; VFs are left for the workers.
  std::vector<std::size_t> vfs;
  for (std::size_t at = 0; at < actions.size(); ++at) {
    if (root.exists(functionPath(actions[at].function) + "/physfn")) {
      vfs.push_back(at);
    } else {
      attempt(at, 0);
    }
  }
  // Each worker takes the next VF until none is left; this thread is one of them.
  std::atomic<std::size_t> next = 0;
  const auto work = [&](std::size_t worker) {
    for (std::size_t turn = next++; turn < vfs.size(); turn = next++) {
      attempt(vfs[turn], worker);
    }
  };
  const std::size_t workers = std::min(bindingWorkers, vfs.size());
  std::vector<std::jthread> others;
  others.reserve(workers);
  try {
    for (std::size_t worker = 1; worker < workers; ++worker) {
      others.emplace_back(work, worker);
    }
  } catch (const std::system_error&) {
    // No more threads: those that there are do all of the work.
  }
  work(0);
  others.clear();
  return failures;
}

}  // namespace vfpass::host
