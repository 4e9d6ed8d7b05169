#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace vfpass {

/// Ethernet address, bytes in transmission order.
struct MacAddress {
  std::array<std::uint8_t, 6> bytes{};

  auto operator<=>(const MacAddress&) const = default;
  [[nodiscard]] bool isZero() const { return bytes == std::array<std::uint8_t, 6>{}; }
  [[nodiscard]] bool isMulticast() const { return (bytes[0] & 0x01U) != 0; }
};

/// InfiniBand EUI-64. Over netlink, the kernel takes it as a host-order 64-bit number whose most
/// significant byte is the first byte of the written form.
struct Guid {
  std::uint64_t value = 0;

  auto operator<=>(const Guid&) const = default;
  /// False for zero and all-ones, which a subnet manager ignores.
  [[nodiscard]] bool isUsable() const { return value != 0 && value != ~std::uint64_t{0}; }
};

/// libvirt domain UUID, bytes in written order.
struct Uuid {
  std::array<std::uint8_t, 16> bytes{};

  auto operator<=>(const Uuid&) const = default;
};

/// `aa:bb:cc:dd:ee:ff` or with dashes; nullopt for anything else.
std::optional<MacAddress> parseMacAddress(std::string_view text);
/// `00:11:22:33:44:55:66:77` (also with dashes, or four groups `0011:2233:4455:6677`, or `0x` and
/// 16 digits); nullopt for anything else.
std::optional<Guid> parseGuid(std::string_view text);
/// 32 hexadecimal digits, with or without dashes, as libvirt accepts them.
std::optional<Uuid> parseUuid(std::string_view text);

std::string toString(const MacAddress& mac);  ///< lower case, colons
std::string toString(const Guid& guid);       ///< eight bytes, lower case, colons
std::string toString(const Uuid& uuid);       ///< 8-4-4-4-12, lower case, libvirt's spelling

}  // namespace vfpass
