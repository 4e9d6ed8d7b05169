#include "check.hpp"
#include "vfpass/base/text.hpp"

namespace vfpass::doctor {
namespace {

constexpr const char* expectedDevices = "no device in quarantine";

// All functions of its slot have this in their lines of the kernel log.
std::string slotOf(const PciAddress& address) {
  const std::string text = toString(address);
  return text.substr(0, text.rfind('.'));
}

std::string seenOf(const QuarantinedDevice& device) {
  std::string seen = "since " + printable(device.since) + ": " + printable(device.reason);
  for (const PciAddress& place : device.elsewhere) {
    seen += "; it is at " + toString(place) + " now";
  }
  return isReplaced(device) ? seen + "; another card is at this address now" : seen;
}

}  // namespace

std::string withoutQuarantine(const View& view) {
  return view.requirements().quarantined ? "" : "the devices in quarantine are not known";
}

// Of the whole host: a device that nobody uses now is one that `index: auto` and `init` leave out.
void checkQuarantine(const View& view, Results& results) {
  const auto& quarantined = view.requirements().quarantined.value();
  for (const QuarantinedDevice& device : quarantined) {
    results.warned(toString(device.device), expectedDevices, seenOf(device),
                   "look for the cause (`dmesg | grep " + slotOf(device.device) +
                       "`), remove it, then run `vfpass quarantine release " +
                       toString(device.device) + "`");
  }
  if (quarantined.empty()) {
    results.passed("", expectedDevices, "none");
  }
}

}  // namespace vfpass::doctor
