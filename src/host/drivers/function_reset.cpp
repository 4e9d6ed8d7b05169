#include "vfpass/host/function_reset.hpp"

#include <algorithm>
#include <cerrno>

#include "sysfs/kernel_write.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/host/pci_function.hpp"

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

bool isNotTyped(const std::exception_ptr& failure) {
  try {
    std::rethrow_exception(failure);
  } catch (const WriteError& error) {
    return error.number() == ENOTTY;
  } catch (const Error&) {
    return false;
  }
}

// With ENOTTY the kernel answers for a method that it does not have, and for a device that has not
// come back (pci_dev_wait, pci_bridge_wait_for_secondary_bus; drivers/pci/pci.c). It has none if
// an administrator has emptied `reset_method`. A bus reset is listed for function 0 before the
// kernel knows the other functions, and is refused when there are some (pci_parent_bus_reset).
bool hasNoMethod(const Root& root, const PciAddress& function) {
  const auto methods = readResetMethods(root, functionPath(function));
  return methods && !resetsAlone(*methods) &&
         (methods->empty() || !readBusPeers(root, function).empty());
}

std::exception_ptr didNotComeBack(const PciAddress& function,
                                  const std::vector<std::string>& methods) {
  const std::string by = methods.empty() ? "" : " by " + join(methods, ", ");
  return std::make_exception_ptr(Error(
      toString(function) + ": the kernel's reset" + by + " failed (ENOTTY): the device did not " +
          "come back after it",
      "check the kernel log (dmesg); if the device stays away, shut the host down and switch its "
      "power off and on"));
}

}  // namespace

std::vector<ResetOutcome> resetFunctions(const Root& root, KernelWriter& writer,
                                         const std::vector<PciAddress>& functions,
                                         std::chrono::milliseconds deadline) {
  std::vector<ResetOutcome> outcomes(functions.size());
  std::vector<DeviceWrite> writes;
  std::vector<std::size_t> written;
  for (std::size_t at = 0; at < functions.size(); ++at) {
    const std::string directory = functionPath(functions[at]);
    if (!root.exists(directory)) {
      outcomes[at].failure = std::make_exception_ptr(
          Error(toString(functions[at]) + ": no such PCI device",
                "list the devices with `vfpass pf list` and `vfpass vf list`"));
    } else if (root.exists(directory + "/reset")) {
      // The file only exists when the kernel has a reset method for this function.
      outcomes[at].methods = readResetMethods(root, directory).value_or(std::vector<std::string>{});
      writes.push_back({functions[at], directory + "/reset", "1"});
      written.push_back(at);
    }
  }
  const auto failures = writer.writeTogether(writes, deadline);
  for (std::size_t i = 0; i < failures.size(); ++i) {
    ResetOutcome& outcome = outcomes[written[i]];
    outcome.done = !failures[i];
    outcome.failure = failures[i];
    if (failures[i] && isNotTyped(failures[i])) {
      const bool isNone = hasNoMethod(root, writes[i].device);
      outcome.failure = isNone ? nullptr : didNotComeBack(writes[i].device, outcome.methods);
      outcome.methods.resize(isNone ? 0 : outcome.methods.size());
    }
  }
  return outcomes;
}

}  // namespace vfpass::host
