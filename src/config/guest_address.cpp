#include "guest_address.hpp"

#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>

#include "vfpass/base/text.hpp"

namespace vfpass::config {
namespace {

using Bytes = std::span<const std::uint8_t>;

// True if every bit after the prefix has this value.
bool hostBitsAre(Bytes address, std::size_t prefix, bool value) {
  for (std::size_t bit = prefix; bit < address.size() * 8; ++bit) {
    const bool set = (address[bit / 8] >> (7 - bit % 8) & 1U) != 0;
    if (set != value) {
      return false;
    }
  }
  return true;
}

std::optional<std::string> fault(Bytes address, std::size_t prefix) {
  const std::size_t bits = address.size() * 8;
  if (prefix == 0 || prefix > bits) {
    return "expected a prefix length from 1 to " + std::to_string(bits);
  }
  const bool version4 = address.size() == 4;
  if (version4 ? (address[0] & 0xf0U) == 0xe0U : address[0] == 0xff) {
    return "it is a multicast address";
  }
  if (std::all_of(address.begin(), address.end(), [](std::uint8_t byte) { return byte == 0; })) {
    return "it is the unspecified address";
  }
  // RFC 3021: a /31 has neither network nor broadcast address.
  if (version4 && prefix < 31 && hostBitsAre(address, prefix, false)) {
    return "it is the network address";
  }
  if (version4 && prefix < 31 && hostBitsAre(address, prefix, true)) {
    return "it is the broadcast address of the network";
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::string> guestAddressFault(const std::string& text) {
  const std::size_t slash = text.find('/');
  const auto prefix =
      slash == std::string::npos ? std::nullopt : parseNumber(text.substr(slash + 1));
  if (!prefix) {
    return "expected ADDRESS/PREFIX, such as 192.168.100.10/24";
  }
  const std::string address = text.substr(0, slash);
  std::array<std::uint8_t, 16> bytes{};
  if (::inet_pton(AF_INET, address.c_str(), bytes.data()) == 1) {
    return fault(Bytes(bytes).first(4), *prefix);
  }
  if (::inet_pton(AF_INET6, address.c_str(), bytes.data()) == 1) {
    return fault(bytes, *prefix);
  }
  return "expected an IPv4 or IPv6 address before the `/`";
}

}  // namespace vfpass::config
