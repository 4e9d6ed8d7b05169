#include "companion_lines.hpp"

#include <algorithm>
#include <array>

namespace vfpass::plan {
namespace {

constexpr std::size_t longestName = 32;  // of an entry (mapping.schema.json)
constexpr std::uint32_t bridgeBase = 0x06;
constexpr std::uint32_t otherBridge =
    0x0680;  // the class of NVSwitches, which have no bus below them

struct Kind {
  std::uint32_t code;  ///< base class and subclass
  std::string_view name;
};

// Functions that accompany GPUs, named as in the PCI Code and ID Assignment Specification. 0c80 is
// the USB Type-C controller (UCSI) of NVIDIA's cards.
constexpr std::array<Kind, 8> kinds{{{0x0403, "audio"},
                                     {0x0c03, "usb"},
                                     {0x0c80, "ucsi"},
                                     {0x0300, "gpu"},
                                     {0x0302, "gpu"},
                                     {0x0680, "nvswitch"},
                                     {0x0200, "nic"},
                                     {0x0108, "nvme"}}};

std::string kindOf(const GroupPeer& function) {
  const auto found = std::ranges::find(kinds, function.classCode >> 8U, &Kind::code);
  return found == kinds.end() ? "companion" : std::string(found->name);
}

std::string freeName(const std::string& entry, const std::string& kind,
                     std::set<std::string>& taken) {
  for (unsigned number = 1;; ++number) {
    const std::string end = "-" + kind + (number == 1 ? "" : std::to_string(number));
    std::string name = entry.substr(0, longestName - std::min(end.size(), longestName)) + end;
    if (taken.insert(name).second) {
      return name;
    }
  }
}

}  // namespace

std::string companionRemedy(const std::vector<GroupPeer>& functions, const FunctionTerms& terms) {
  const bool anyBridge = std::ranges::any_of(functions, [](const GroupPeer& function) {
    return function.classCode >> 16U == bridgeBase && function.classCode >> 8U != otherBridge;
  });
  if (functions.empty() || anyBridge) {
    return {};
  }
  std::set<std::string> taken = terms.takenNames;
  std::string text = "pass them to the same guest with these lines under `functions:`:";
  for (const auto& function : functions) {
    text += "\n  - {name: " + freeName(terms.name, kindOf(function), taken) + ", pci: \"" +
            toString(function.address) + "\"}";
  }
  return text + "\nor ";
}

}  // namespace vfpass::plan
