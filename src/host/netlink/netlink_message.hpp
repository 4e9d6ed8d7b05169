#pragma once

#include <netlink/attr.h>
#include <netlink/msg.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace vfpass::host {

using NetlinkMessage = std::unique_ptr<nl_msg, void (*)(nl_msg*)>;

/// A message of libnl's default size (a page); all messages built here are far smaller.
inline NetlinkMessage newMessage() {
  NetlinkMessage message(nlmsg_alloc(), nlmsg_free);
  if (!message) {
    throw std::bad_alloc();
  }
  return message;
}

/// libnl's message builders only fail for lack of space.
inline void requireRoom(bool fitted) {
  if (!fitted) {
    throw std::bad_alloc();
  }
}

inline std::string bytesOf(const NetlinkMessage& message) {
  const nlmsghdr* header = nlmsg_hdr(message.get());
  return {reinterpret_cast<const char*>(header), header->nlmsg_len};
}

/// A received datagram, aligned as libnl requires.
class ReceivedMessage {
 public:
  explicit ReceivedMessage(std::string_view bytes)
      : words_(bytes.size() / sizeof(std::uint64_t) + 1), length_(static_cast<int>(bytes.size())) {
    if (!bytes.empty()) {
      std::memcpy(words_.data(), bytes.data(), bytes.size());
    }
  }

  /// The first message if it is complete and has at least `payload` bytes of payload, else nullptr.
  nlmsghdr* header(std::size_t payload) {
    auto* header = reinterpret_cast<nlmsghdr*>(words_.data());
    const bool whole = nlmsg_ok(header, length_) != 0;
    return whole && nlmsg_datalen(header) >= static_cast<int>(payload) ? header : nullptr;
  }

 private:
  std::vector<std::uint64_t> words_;
  int length_;
};

/// The attribute's payload as a number; nullopt when it is missing or too short.
template <typename Number>
std::optional<Number> numberOf(const nlattr* attribute) {
  if (attribute == nullptr || nla_len(attribute) < static_cast<int>(sizeof(Number))) {
    return std::nullopt;
  }
  Number number;
  std::memcpy(&number, nla_data(attribute), sizeof number);
  return number;
}

/// The attribute's payload as text up to its first zero byte; empty when it is missing.
inline std::string textOf(const nlattr* attribute) {
  if (attribute == nullptr) {
    return {};
  }
  const auto* start = static_cast<const char*>(nla_data(attribute));
  const auto length = static_cast<std::size_t>(std::max(nla_len(attribute), 0));
  return {start, ::strnlen(start, length)};
}

}  // namespace vfpass::host
