#include "vfpass/mac_guid_uuid.hpp"

#include <algorithm>

#include "vfpass/base/text.hpp"

namespace vfpass {
namespace {

std::array<std::uint8_t, 8> bigEndian(std::uint64_t value) {
  std::array<std::uint8_t, 8> bytes{};
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = static_cast<std::uint8_t>(value >> (8 * (bytes.size() - 1 - i)));
  }
  return bytes;
}

std::uint64_t fromBigEndian(const std::array<std::uint8_t, 8>& bytes) {
  std::uint64_t value = 0;
  for (const std::uint8_t byte : bytes) {
    value = value << 8U | byte;
  }
  return value;
}

std::string without(std::string_view text, char character) {
  std::string rest(text);
  rest.erase(std::remove(rest.begin(), rest.end(), character), rest.end());
  return rest;
}

}  // namespace

std::optional<MacAddress> parseMacAddress(std::string_view text) {
  MacAddress mac;
  if (parseHexBytes(text, ':', mac.bytes) || parseHexBytes(text, '-', mac.bytes)) {
    return mac;
  }
  return std::nullopt;
}

std::optional<Guid> parseGuid(std::string_view text) {
  std::array<std::uint8_t, 8> bytes{};
  const bool grouped = text.size() == 19 && text[4] == ':' && text[9] == ':' && text[14] == ':';
  const bool prefixed = text.size() == 18 && text.starts_with("0x");
  const bool valid = parseHexBytes(text, ':', bytes) || parseHexBytes(text, '-', bytes) ||
                     (grouped && parseHexBytes(without(text, ':'), 0, bytes)) ||
                     (prefixed && parseHexBytes(text.substr(2), 0, bytes));
  return valid ? std::optional(Guid{fromBigEndian(bytes)}) : std::nullopt;
}

std::optional<Uuid> parseUuid(std::string_view text) {
  Uuid uuid;
  const bool dashed =
      text.size() == 36 && text[8] == '-' && text[13] == '-' && text[18] == '-' && text[23] == '-';
  const std::string digits = dashed ? without(text, '-') : std::string(text);
  return parseHexBytes(digits, 0, uuid.bytes) ? std::optional(uuid) : std::nullopt;
}

std::string toString(const MacAddress& mac) { return hexBytes(mac.bytes, ":"); }

std::string toString(const Guid& guid) { return hexBytes(bigEndian(guid.value), ":"); }

std::string toString(const Uuid& uuid) {
  std::string text = hexBytes(uuid.bytes, "");
  for (const std::size_t at : {20U, 16U, 12U, 8U}) {
    text.insert(at, "-");
  }
  return text;
}

}  // namespace vfpass
