#include "vfpass/host/error_counters.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>

#include "vfpass/base/text.hpp"
#include "vfpass/host/kernel_log.hpp"
#include "vfpass/host/pci_function.hpp"

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

namespace {

constexpr std::uint64_t nvidia = 0x10de;

// NVIDIA's catalogue (docs.nvidia.com/deploy/xid-errors/analyzing-xid-catalog.html): 48 double-bit
// error of memory, 62 halt of a microcontroller, 63 and 64 a row that is remapped or cannot be, 79
// the GPU has fallen off the bus, 92 many single-bit errors, 94 and 95 errors of memory, contained
// or not, 119 and 120 the GPU's system processor does not answer or has failed. Others are faults
// of applications, or those of NVLink (74), whose other end can be at fault.
constexpr std::array<std::uint64_t, 10> hardwareXids{48, 62, 63, 64, 79, 92, 94, 95, 119, 120};

// `NVRM: Xid (PCI:0000:65:00): 79, pid=...`, from the beginning of the line: devices and drivers
// choose parts of other messages. nullopt: another message, another GPU or another Xid.
std::optional<unsigned> hardwareXidIn(std::string_view text, const PciAddress& gpu) {
  constexpr std::string_view beginning = "NVRM: Xid (PCI:";
  const auto end = text.find("): ");
  if (!text.starts_with(beginning) || end == std::string_view::npos) {
    return std::nullopt;
  }
  const std::string place(text.substr(beginning.size(), end - beginning.size()));
  const auto address = parsePciAddress(place.find('.') == std::string::npos ? place + ".0" : place);
  const std::string_view rest = text.substr(end + 3);
  const auto number = parseNumber(rest.substr(0, rest.find_first_not_of("0123456789")));
  const bool isHardware = number && std::ranges::find(hardwareXids, *number) != hardwareXids.end();
  return isHardware && address == gpu ? std::optional(static_cast<unsigned>(*number))
                                      : std::nullopt;
}

}  // namespace

std::optional<XidLog> readXidLog(const Root& root, const PciAddress& function) {
  constexpr std::uint32_t displays = 3;
  if (root.readNumber(functionPath(function) + "/vendor") != nvidia ||
      readClass(root, function) >> 16U != displays) {
    return std::nullopt;
  }
  XidLog log;
  bool any = false;
  log.readable = visitKernelLog(root, [&](const KernelRecord& record) {
    log.first = any ? log.first : record.sequence;
    log.next = record.sequence + 1;
    any = true;
    if (const auto number = hardwareXidIn(record.text, function)) {
      log.xids.push_back({record.sequence, *number});
    }
    return true;
  });
  return log;
}

}  // namespace vfpass::host
