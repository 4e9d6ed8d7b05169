#include "vfpass/host/error_counters.hpp"

#include <string>

#include "sysfs/pci_function.hpp"
#include "vfpass/base/text.hpp"

namespace vfpass::host {
namespace {

// The last line is the sum: `TOTAL_ERR_FATAL 0` (aer_stats_dev_attr, drivers/pci/pcie/aer.c). The
// file is missing where the function has no AER capability or the firmware keeps AER to itself.
std::optional<std::uint64_t> totalIn(const std::optional<std::string>& text,
                                     const std::string& name) {
  for (const std::string& line : splitLines(text.value_or(""))) {
    if (line.starts_with(name + " ")) {
      return parseNumber(trim(std::string_view(line).substr(name.size())));
    }
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::uint64_t> readUncorrectedErrors(const Root& root, const PciAddress& function) {
  const std::string directory = functionPath(function);
  const auto fatal = totalIn(root.readText(directory + "/aer_dev_fatal"), "TOTAL_ERR_FATAL");
  const auto other = totalIn(root.readText(directory + "/aer_dev_nonfatal"), "TOTAL_ERR_NONFATAL");
  return fatal && other ? std::optional(*fatal + *other) : std::nullopt;
}

}  // namespace vfpass::host
