#include "vfpass/plan/automatic.hpp"

// Header-only, because users rely on the hash (`auto` gives the same address on every host), and
// XXH3's values are frozen since xxHash 0.8.0.
#define XXH_INLINE_ALL
#include <xxhash.h>

namespace vfpass::plan {
namespace {

std::uint64_t hashOf(const Uuid& domain, const std::string& entry, const std::string& role,
                     unsigned attempt) {
  const std::string key =
      "vfpass/1/" + role + "/" + toString(domain) + "/" + entry + "/" + std::to_string(attempt);
  return XXH3_64bits(key.data(), key.size());
}

MacAddress macFrom(std::uint64_t hash) {
  MacAddress mac;
  for (std::size_t i = 0; i < mac.bytes.size(); ++i) {
    mac.bytes[i] = static_cast<std::uint8_t>(hash >> (8 * i));
  }
  // IEEE 802: bit 1 of the first byte means "locally administered", bit 0 "multicast".
  mac.bytes[0] = static_cast<std::uint8_t>((mac.bytes[0] & 0xfcU) | 0x02U);
  return mac;
}

Guid guidFrom(std::uint64_t hash) {
  // EUI-64 has the same two bits in its first byte.
  const std::uint64_t first = ((hash >> 56U) & 0xfcU) | 0x02U;
  return Guid{(hash & 0x00ffffffffffffffU) | first << 56U};
}

template <typename Value, typename Make>
Value firstFree(Make make, const std::function<bool(const Value&)>& taken) {
  for (unsigned attempt = 0;; ++attempt) {
    const Value value = make(attempt);
    if (!taken(value)) {
      return value;
    }
  }
}

}  // namespace

MacAddress automaticMac(const Uuid& domain, const std::string& entry,
                        const std::function<bool(const MacAddress&)>& taken) {
  return firstFree<MacAddress>(
      [&](unsigned attempt) { return macFrom(hashOf(domain, entry, "mac", attempt)); }, taken);
}

Guid automaticGuid(const Uuid& domain, const std::string& entry, GuidRole role,
                   const std::function<bool(const Guid&)>& taken) {
  const std::string roleName = role == GuidRole::node ? "node-guid" : "port-guid";
  return firstFree<Guid>(
      [&](unsigned attempt) { return guidFrom(hashOf(domain, entry, roleName, attempt)); }, taken);
}

}  // namespace vfpass::plan
