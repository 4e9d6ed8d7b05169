#pragma once

#include <linux/netlink.h>
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

/// A request of this type. `head` is the header of its family, before the attributes.
template <typename Head>
NetlinkMessage startRequest(int type, int flags, Head head) {
  NetlinkMessage message = newMessage();
  requireRoom(nlmsg_put(message.get(), 0, 1, type, 0, NLM_F_REQUEST | flags) != nullptr);
  requireRoom(nlmsg_append(message.get(), &head, sizeof head, NLMSG_ALIGNTO) == 0);
  return message;
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

/// The attribute's payload as a number, or as a struct of the kernel; nullopt when it is missing or
/// too short.
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

/// Whether the attribute's payload is exactly this text and a zero byte.
inline bool isText(const nlattr* attribute, const std::string& expected) {
  return attribute != nullptr && nla_len(attribute) == static_cast<int>(expected.size() + 1) &&
         std::memcmp(nla_data(attribute), expected.c_str(), expected.size() + 1) == 0;
}

/// The first attribute of this type that is nested in another one; nullptr when either is missing.
inline nlattr* findNested(const nlattr* outer, int type) {
  return outer == nullptr ? nullptr
                          : nla_find(static_cast<nlattr*>(nla_data(outer)), nla_len(outer), type);
}

/// The kernel's acknowledgement of a request.
struct Acknowledgement {
  int error = 0;        ///< errno; 0: success
  std::string message;  ///< the driver's message (extended acknowledgement), printable
};

/// Parses one NLMSG_ERROR message; nullopt for any other message.
std::optional<Acknowledgement> parseAcknowledgement(std::string_view bytes);

/// The system's reason, followed by the driver's message if there is one.
std::string reasonOf(const Acknowledgement& refusal);

/// Calls `visit(header, bytes)` for each complete message of a dump.
template <typename Visit>
void eachMessage(std::string_view dump, Visit visit) {
  while (dump.size() >= sizeof(nlmsghdr)) {
    nlmsghdr header{};
    std::memcpy(&header, dump.data(), sizeof header);
    if (header.nlmsg_len < sizeof header || header.nlmsg_len > dump.size()) {
      return;
    }
    visit(header, dump.substr(0, header.nlmsg_len));
    dump.remove_prefix(std::min(dump.size(), std::size_t{NLMSG_ALIGN(header.nlmsg_len)}));
  }
}

/// The result of a dump: errno, or 0 when it is complete. EBADMSG when its end is missing.
int dumpError(std::string_view dump);

/// Whether the data changed while the kernel wrote the dump (NLM_F_DUMP_INTR): entries may be
/// missing.
bool wasInterrupted(std::string_view dump);

}  // namespace vfpass::host
