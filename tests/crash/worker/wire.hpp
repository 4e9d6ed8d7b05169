#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <type_traits>
#include <vector>

namespace vfpass::crash {

/// A request of a worker (a process that runs vfpass), or the reply of the world (the process that
/// owns the simulated kernel and libvirt). Each is one packet of a SOCK_SEQPACKET socket. The first
/// part of a request is its kind.
using Message = std::vector<std::string>;

inline constexpr std::size_t largestMessage = std::size_t{1} << 20U;

/// The bytes of a packet. They are never empty, because an empty packet reads like a closed socket.
inline std::string pack(const Message& message) {
  std::string bytes = "M";
  for (const auto& part : message) {
    const auto size = static_cast<std::uint32_t>(part.size());
    bytes.append(reinterpret_cast<const char*>(&size), sizeof size);
    bytes += part;
  }
  return bytes;
}

inline Message unpack(const char* data, std::size_t length) {
  Message message;
  for (std::size_t at = 1; at + sizeof(std::uint32_t) <= length;) {
    std::uint32_t size = 0;
    std::memcpy(&size, data + at, sizeof size);
    at += sizeof size;
    message.emplace_back(data + at, size);
    at += size;
  }
  return message;
}

/// A value as part of a message. Both ends are the same program.
template <typename Value>
std::string bytesOf(const Value& value) {
  static_assert(std::is_trivially_copyable_v<Value>);
  return std::string(reinterpret_cast<const char*>(&value), sizeof value);
}

template <typename Value>
Value valueOf(const std::string& bytes) {
  static_assert(std::is_trivially_copyable_v<Value>);
  Value value{};
  std::memcpy(static_cast<void*>(&value), bytes.data(), sizeof value);
  return value;
}

}  // namespace vfpass::crash
