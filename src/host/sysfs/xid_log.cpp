#include "vfpass/host/xid_log.hpp"

#include <algorithm>
#include <array>
#include <string_view>

#include "sysfs/pci_function.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/host/kernel_log.hpp"

namespace vfpass::host {
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
