#include "drivers/reset_function.hpp"

#include <cerrno>
#include <string>

#include "sysfs/pci_function.hpp"
#include "vfpass/base/text.hpp"

namespace vfpass::host {
namespace {

// Collects the errors of all functions.
class Failures {
 public:
  void add(const Error& error, bool late) {
    messages_.emplace_back(error.what());
    // The remedy for a reset that hangs takes precedence: it can block the others.
    if (remedy_.empty() || (late && !late_)) {
      remedy_ = error.remedy();
    }
    late_ = late_ || late;
  }
  void addFrom(const std::exception_ptr& failure) {
    try {
      std::rethrow_exception(failure);
    } catch (const TimeoutError& error) {
      add(error, true);
    } catch (const WriteError& error) {
      if (error.number() != ENOTTY) {  // no reset method works for this device
        add(error, false);
      }
    } catch (const Error& error) {
      add(error, false);
    }
  }
  void throwAny() const {
    if (messages_.empty()) {
      return;
    }
    const std::string message = join(messages_, "; ");
    if (late_) {
      throw TimeoutError(message, remedy_);
    }
    throw Error(message, remedy_);
  }

 private:
  std::vector<std::string> messages_;
  std::string remedy_;
  bool late_ = false;
};

}  // namespace

void resetFunctions(const Root& root, KernelWriter& writer,
                    const std::vector<PciAddress>& functions, std::chrono::milliseconds deadline) {
  Failures failures;
  std::vector<DeviceWrite> writes;
  for (const PciAddress& function : functions) {
    const std::string directory = functionPath(function);
    if (!root.exists(directory)) {
      failures.add(Error(toString(function) + ": no such PCI device",
                         "list the devices with `vfpass pf list` and `vfpass vf list`"),
                   false);
    } else if (root.exists(directory + "/reset")) {
      // The file only exists when the kernel has a reset method for this function.
      writes.push_back({function, directory + "/reset", "1"});
    }
  }
  for (const auto& failure : writer.writeTogether(writes, deadline)) {
    if (failure) {
      failures.addFrom(failure);
    }
  }
  failures.throwAny();
}

}  // namespace vfpass::host
