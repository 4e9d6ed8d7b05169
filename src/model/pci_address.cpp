#include "vfpass/pci_address.hpp"

#include <array>
#include <cstdio>

#include "vfpass/base/text.hpp"

namespace vfpass {
namespace {

// Removes the part before `separator` and the separator from `text`, and returns the part.
std::string_view takeUntil(std::string_view& text, char separator) {
  const auto end = text.find(separator);
  const auto part = text.substr(0, end);
  text = end == std::string_view::npos ? std::string_view{} : text.substr(end + 1);
  return part;
}

std::optional<std::uint32_t> hexPart(std::string_view part, std::size_t width,
                                     std::uint64_t limit) {
  const auto value = parseNumber(part, 16);
  if (part.size() != width || !value || *value > limit) {
    return std::nullopt;
  }
  return static_cast<std::uint32_t>(*value);
}

}  // namespace

std::optional<PciAddress> parsePciAddress(std::string_view text) {
  std::optional<std::uint32_t> domain = 0;
  if (text.find(':') != text.rfind(':')) {
    const auto part = takeUntil(text, ':');
    // Four digits on nearly every machine; up to eight behind Intel VMD and on Hyper-V.
    domain =
        part.size() < 4 || part.size() > 8 ? std::nullopt : hexPart(part, part.size(), 0xffffffffU);
  }
  const auto bus = hexPart(takeUntil(text, ':'), 2, 0xff);
  const auto slot = hexPart(takeUntil(text, '.'), 2, 0x1f);
  const auto function = hexPart(text, 1, 7);
  if (!domain || !bus || !slot || !function) {
    return std::nullopt;
  }
  return PciAddress{*domain, static_cast<std::uint8_t>(*bus), static_cast<std::uint8_t>(*slot),
                    static_cast<std::uint8_t>(*function)};
}

std::string toString(const PciAddress& address) {
  std::array<char, 24> text{};
  std::snprintf(text.data(), text.size(), "%04x:%02x:%02x.%x", address.domain, address.bus,
                address.slot, address.function);
  return text.data();
}

}  // namespace vfpass
