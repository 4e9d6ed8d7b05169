#include "vfpass/host/function_reset.hpp"

#include <algorithm>
#include <cerrno>

#include "sysfs/kernel_write.hpp"
#include "sysfs/pci_function.hpp"
#include "vfpass/base/text.hpp"

namespace vfpass::host {
namespace {

constexpr std::size_t longestMethod = 32;
constexpr std::size_t methodLimit = 16;

std::vector<std::string> wordsOf(std::string_view text) {
  std::vector<std::string> words;
  while (!text.empty() && words.size() < methodLimit) {
    const auto end = std::min(text.find(' '), text.size());
    if (end > 0) {
      words.push_back(printable(std::string(text.substr(0, std::min(end, longestMethod)))));
    }
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return words;
}

}  // namespace

std::optional<std::vector<std::string>> readResetMethods(const Root& root,
                                                         const std::string& directory) {
  if (const auto text = root.readText(directory + "/reset_method")) {
    return wordsOf(*text);
  }
  // Neither file exists when the kernel has no reset method (pci_dev_reset_attr_is_visible and
  // pci_dev_reset_method_attr_is_visible, drivers/pci/pci.c). A snapshot has no write-only files.
  if (root.isLive() && root.exists(directory) && !root.exists(directory + "/reset")) {
    return std::vector<std::string>{};
  }
  return std::nullopt;
}

// The kernel only offers a secondary bus reset (`bus`, `cxl_bus`) for the sole function on a bus.
bool resetsAlone(const std::vector<std::string>& methods) {
  return std::ranges::any_of(
      methods, [](const std::string& method) { return method != "bus" && method != "cxl_bus"; });
}

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
