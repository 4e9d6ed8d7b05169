#include "config_space.hpp"

#include <algorithm>
#include <bit>
#include <cstddef>

#include "vfpass/host/root.hpp"

namespace vfpass::doctor {
namespace {

// PCI Express Base Specification 5.0: 7.6.3 (extended capability header), 7.7.8 (ACS), 7.8.6
// (Resizable BAR), 10.5 (ATS).
constexpr std::size_t extendedSpace = 0x100;
constexpr unsigned acs = 0x0d;
constexpr unsigned ats = 0x0f;
constexpr unsigned resizableBar = 0x15;
constexpr unsigned barLimit = 6;
constexpr unsigned acsMask = 0x7f;
constexpr int acsBits = 7;
constexpr int capabilityLimit = (4096 - 256) / 8;

std::optional<unsigned> wordAt(std::string_view config, std::size_t offset) {
  if (offset + 2 > config.size()) {
    return std::nullopt;
  }
  return static_cast<unsigned char>(config[offset]) |
         static_cast<unsigned>(static_cast<unsigned char>(config[offset + 1])) << 8U;
}

std::optional<std::size_t> findExtended(std::string_view config, unsigned wanted) {
  std::size_t at = extendedSpace;
  for (int step = 0; step < capabilityLimit && at >= extendedSpace; ++step) {
    const auto identity = wordAt(config, at);
    const auto next = wordAt(config, at + 2);
    if (!identity || !next) {
      return std::nullopt;
    }
    if (*identity == wanted) {
      return at;
    }
    at = *next >> 4U & 0xffcU;
  }
  return std::nullopt;
}

}  // namespace

std::string readConfig(const host::Root& root, const TopologyFunction& function,
                       std::size_t bytes) {
  const host::Folder folder(root, "sys/devices/" + function.path);
  return folder ? folder.readBytes("config", 0, bytes) : "";
}

bool hasExtendedSpace(std::string_view config) { return config.size() >= extendedSpace + 4; }

std::optional<Acs> acsOf(std::string_view config) {
  const auto at = findExtended(config, acs);
  const auto capable = at ? wordAt(config, *at + 4) : std::nullopt;
  const auto enabled = at ? wordAt(config, *at + 6) : std::nullopt;
  if (!capable || !enabled) {
    return std::nullopt;
  }
  return Acs{*capable & acsMask, *enabled & acsMask};
}

bool hasAts(std::string_view config) { return findExtended(config, ats).has_value(); }

// A capability and a control register for each BAR. Bit n of the former, from 4 on, offers
// 2^(n + 16) bytes; bits 5 to 7 of the first control register are the number of BARs.
std::optional<std::uint64_t> largestResizableBar(std::string_view config) {
  const auto at = findExtended(config, resizableBar);
  const auto control = at ? wordAt(config, *at + 8) : std::nullopt;
  if (!control) {
    return std::nullopt;
  }
  std::optional<std::uint64_t> largest;
  for (unsigned bar = 0; bar < std::min(*control >> 5U & 7U, barLimit); ++bar) {
    const auto low = wordAt(config, *at + 4 + std::size_t{8} * bar);
    const auto high = wordAt(config, *at + 6 + std::size_t{8} * bar);
    const std::uint32_t sizes = low && high ? (*high << 16U | *low) >> 4U : 0;
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
