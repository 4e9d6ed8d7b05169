#include "helper/task_name.hpp"

#include <array>

#include "vfpass/base/text.hpp"

namespace vfpass::host {
namespace {

constexpr std::string_view prefix = "vf";
constexpr std::size_t longestName = 15;
constexpr std::size_t packedDigits = 12;

// Domain, bus, and device and function (as in a routing ID), without separators.
std::string packed(const PciAddress& device) {
  const std::array<std::uint8_t, 6> bytes{
      static_cast<std::uint8_t>(device.domain >> 24U),
      static_cast<std::uint8_t>(device.domain >> 16U),
      static_cast<std::uint8_t>(device.domain >> 8U),
      static_cast<std::uint8_t>(device.domain),
      device.bus,
      static_cast<std::uint8_t>((device.slot << 3U) | device.function)};
  return hexBytes(bytes, "");
}

std::optional<PciAddress> unpacked(std::string_view digits) {
  const auto value = digits.size() == packedDigits ? parseNumber(digits, 16) : std::nullopt;
  if (!value) {
    return std::nullopt;
  }
  const auto routing = static_cast<unsigned>(*value & 0xffU);
  return PciAddress{
      static_cast<std::uint32_t>(*value >> 16U), static_cast<std::uint8_t>((*value >> 8U) & 0xffU),
      static_cast<std::uint8_t>(routing >> 3U), static_cast<std::uint8_t>(routing & 7U)};
}

}  // namespace

std::string taskName(const PciAddress& device) {
  const std::string name = std::string(prefix) + toString(device);
  return name.size() <= longestName ? name : std::string(prefix) + packed(device);
}

std::optional<PciAddress> deviceInTaskName(std::string_view name) {
  if (!name.starts_with(prefix)) {
    return std::nullopt;
  }
  const std::string_view rest = name.substr(prefix.size());
  const auto device =
      rest.find(':') == std::string_view::npos ? unpacked(rest) : parsePciAddress(rest);
  return device && taskName(*device) == name ? device : std::nullopt;
}

}  // namespace vfpass::host
