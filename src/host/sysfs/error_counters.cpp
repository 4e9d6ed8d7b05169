#include "vfpass/host/error_counters.hpp"

#include <algorithm>
#include <array>
#include <string>

#include "sysfs/pci_function.hpp"
#include "vfpass/base/text.hpp"

namespace vfpass::host {
namespace {

// aer_uncorrectable_error_string, drivers/pci/pcie/aer.c: link protocol, surprise down, poisoned
// data, flow control, receiver overflow, malformed packet, checksum, internal error. The others are
// requests that were refused or not answered, which a guest can make its device send (PCI Express
// Base Specification 5.0, 6.2.3.2.3).
constexpr std::array<std::string_view, 8> hardwareErrors{"DLP",  "SDES",    "TLP",  "FCP",
                                                         "RxOF", "MalfTLP", "ECRC", "UncorrIntErr"};

struct Sums {
  std::uint64_t total = 0;
  std::uint64_t hardware = 0;
};

// Lines such as `MalfTLP 0`, the last of which is the sum: `TOTAL_ERR_FATAL 0`
// (aer_stats_dev_attr). nullopt: no file, because the function has no AER capability or the
// firmware keeps AER to itself.
std::optional<Sums> sumsIn(const std::optional<std::string>& text, const std::string& total) {
  Sums sums;
  bool complete = false;
  for (const std::string& line : splitLines(text.value_or(""))) {
    const std::string_view all = line;
    const std::size_t space = std::min(all.find(' '), all.size());
    const auto name = all.substr(0, space);
    const auto count = parseNumber(trim(all.substr(space)));
    if (count && name == total) {
      sums.total = *count;
      complete = true;
    } else if (count && std::ranges::find(hardwareErrors, name) != hardwareErrors.end()) {
      sums.hardware += *count;
    }
  }
  return complete ? std::optional(sums) : std::nullopt;
}

std::optional<ErrorCounts> countsOf(const Root& root, const PciAddress& function) {
  const std::string directory = functionPath(function);
  const auto fatal = sumsIn(root.readText(directory + "/aer_dev_fatal"), "TOTAL_ERR_FATAL");
  const auto other = sumsIn(root.readText(directory + "/aer_dev_nonfatal"), "TOTAL_ERR_NONFATAL");
  if (!fatal || !other) {
    return std::nullopt;
  }
  const auto corrected =
      sumsIn(root.readText(directory + "/aer_dev_correctable"), "TOTAL_ERR_COR").value_or(Sums{});
  const std::uint64_t hardware = fatal->hardware + other->hardware;
  return ErrorCounts{hardware, std::max(fatal->total + other->total, hardware) - hardware,
                     corrected.total};
}

// The port whose link partner the function is. That of a VF has the other VFs of its card, too.
std::optional<PciAddress> portAbove(const Root& root, const PciAddress& function) {
  const std::string path = devicePath(root, function);
  const std::size_t end = path.rfind('/');
  if (end == std::string::npos || readPfOf(root, function)) {
    return std::nullopt;
  }
  const std::size_t before = path.rfind('/', end - 1);
  return before == std::string::npos ? std::nullopt
                                     : parsePciAddress(path.substr(before + 1, end - before - 1));
}

}  // namespace

std::optional<ErrorCounts> readErrorCounts(const Root& root, const PciAddress& function) {
  auto counts = countsOf(root, function);
  const auto port = portAbove(root, function);
  if (const auto above = port ? countsOf(root, *port) : std::nullopt) {
    counts = counts ? counts : ErrorCounts{};
    counts->hardware += above->hardware;
  }
  return counts;
}

}  // namespace vfpass::host
