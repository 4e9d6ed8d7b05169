#include "reset_function.hpp"

#include <cerrno>
#include <string>

#include "pci_function.hpp"
#include "vfpass/base/text.hpp"

namespace vfpass::host {
namespace {

// What went wrong with all of them.
class Failures {
 public:
  void add(const Error& error, bool late) {
    messages_.emplace_back(error.what());
    // What to do about a reset that hangs comes first: it can hold the others up.
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
      if (error.number() != ENOTTY) {  // every method was tried and none fits this device
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
    const std::string folder = functionPath(function);
    if (!root.exists(folder)) {
      failures.add(Error(toString(function) + ": there is no such PCI device",
                         "`vfpass pf list` and `vfpass vf list` show what there is."),
                   false);
    } else if (root.exists(folder + "/reset")) {
      // The file is there only when the kernel knows a way to reset this function.
      writes.push_back({function, folder + "/reset", "1"});
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
