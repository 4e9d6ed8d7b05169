#include "config_space.hpp"

#include <algorithm>
#include <bit>
#include <cstddef>

#include "vfpass/host/root.hpp"

namespace vfpass::doctor {
namespace {

// PCI Express Base Specification 5.0: 7.5.1.1.3 (Command), 7.7.8 (ACS), 7.8.6 (Resizable
// BAR), 10.5.1 (ATS).
constexpr std::size_t commandRegister = 0x04;
constexpr unsigned busMasterEnable = 1U << 2U;
constexpr unsigned atsEnable = 1U << 15U;
constexpr unsigned barLimit = 6;
constexpr unsigned acsMask = 0x7f;
constexpr int acsBits = 7;

}  // namespace

std::string readConfig(const host::Root& root, const Device& function, std::size_t bytes) {
  const host::Folder folder(root, "sys/devices/" + function.path);
  return folder ? folder.readBytes("config", 0, bytes) : "";
}

std::optional<Acs> acsOf(std::string_view config) {
  const auto at = findExtendedCapability(config, accessControlServices);
  const auto capable = at ? configWord(config, *at + 4) : std::nullopt;
  const auto enabled = at ? configWord(config, *at + 6) : std::nullopt;
  if (!capable || !enabled) {
    return std::nullopt;
  }
  return Acs{*capable & acsMask, *enabled & acsMask};
}

// Types of 7.5.3.2: 7 is a PCI Express to PCI bridge, 8 the reverse. The kernel shows 256 bytes of
// a function without PCI Express (pci_cfg_space_size).
bool isConventionalBridge(std::string_view config) {
  constexpr std::size_t conventionalSpace = 256;
  constexpr unsigned toPci = 7;
  constexpr unsigned fromPci = 8;
  const auto at = findCapability(config, pciExpress);
  const auto flags = at ? configWord(config, *at + 2) : std::nullopt;
  const unsigned type = flags ? *flags >> 4U & 0xfU : 0;
  return flags ? type == toPci || type == fromPci : config.size() == conventionalSpace;
}

bool hasAts(std::string_view config) {
  return findExtendedCapability(config, addressTranslationServices).has_value();
}

std::optional<bool> atsEnabled(std::string_view config) {
  const auto at = findExtendedCapability(config, addressTranslationServices);
  const auto control = at ? configWord(config, *at + 6) : std::nullopt;
  return control ? std::optional((*control & atsEnable) != 0) : std::nullopt;
}

bool isBusMaster(std::string_view config) {
  return (configWord(config, commandRegister).value_or(0) & busMasterEnable) != 0;
}

// A capability and a control register for each BAR. Bit n of the former, from 4 on, offers
// 2^(n + 16) bytes; bits 5 to 7 of the first control register are the number of BARs.
std::optional<std::uint64_t> largestResizableBar(std::string_view config) {
  const auto at = findExtendedCapability(config, resizableBar);
  const auto control = at ? configWord(config, *at + 8) : std::nullopt;
  if (!control) {
    return std::nullopt;
  }
  std::optional<std::uint64_t> largest;
  for (unsigned bar = 0; bar < std::min(*control >> 5U & 7U, barLimit); ++bar) {
    const auto low = configWord(config, *at + 4 + std::size_t{8} * bar);
    const auto high = configWord(config, *at + 6 + std::size_t{8} * bar);
    const std::uint32_t sizes = low && high ? (std::uint32_t{*high} << 16U | *low) >> 4U : 0;
    if (sizes != 0) {
      largest = std::max(largest.value_or(0), std::uint64_t{1} << (std::bit_width(sizes) + 19U));
    }
  }
  return largest;
}

std::string acsText(unsigned bits) {
  std::string text;
  for (int bit = acsBits - 1; bit >= 0; --bit) {
    text += (bits >> static_cast<unsigned>(bit) & 1U) != 0 ? '1' : '0';
  }
  return text;
}

bool matchesAcs(unsigned bits, std::string_view pattern) {
  const std::string text = acsText(bits);
  for (std::size_t i = 0; i < text.size() && i < pattern.size(); ++i) {
    if (pattern[i] != 'x' && pattern[i] != text[i]) {
      return false;
    }
  }
  return true;
}

}  // namespace vfpass::doctor
