#include "netlink/netlink_message.hpp"

#include <cerrno>

#include "vfpass/base/text.hpp"

namespace vfpass::host {
namespace {

// The message attribute follows the error and the echoed header (NLM_F_CAPPED) or request.
std::string extendedMessage(nlmsghdr* header, const nlmsgerr& error) {
  const std::size_t echoed = (header->nlmsg_flags & NLM_F_CAPPED) != 0
                                 ? 0
                                 : std::min<std::size_t>(error.msg.nlmsg_len, header->nlmsg_len) -
                                       std::min<std::size_t>(sizeof(nlmsghdr), error.msg.nlmsg_len);
  const int skip = static_cast<int>(sizeof error + NLMSG_ALIGN(echoed));
  if ((header->nlmsg_flags & NLM_F_ACK_TLVS) == 0 || skip > nlmsg_datalen(header)) {
    return {};
  }
  nlattr* text = nlmsg_find_attr(header, skip, NLMSGERR_ATTR_MSG);
  if (text == nullptr || nla_len(text) <= 0) {
    return {};
  }
  const std::string_view words(static_cast<const char*>(nla_data(text)),
                               static_cast<std::size_t>(std::min(nla_len(text), 256)));
  return printable(words.substr(0, words.find('\0')));
}

}  // namespace

std::optional<Acknowledgement> parseAcknowledgement(std::string_view bytes) {
  ReceivedMessage received(bytes);
  nlmsghdr* header = received.header(sizeof(nlmsgerr));
  if (header == nullptr || header->nlmsg_type != NLMSG_ERROR) {
    return std::nullopt;
  }
  nlmsgerr error{};
  std::memcpy(&error, nlmsg_data(header), sizeof error);
  if (error.error > 0 || error.error < -4095) {
    return std::nullopt;
  }
  return Acknowledgement{-error.error, extendedMessage(header, error)};
}

namespace {

// mlx5 of Linux 6.1 sets this message after every failed change to switchdev mode, in place of the
// one with the cause (esw_offloads_start).
bool namesNoCause(const std::string& message) {
  return message.ends_with("Inline mode is different between vports");
}

}  // namespace

std::string reasonOf(const Acknowledgement& refusal) {
  const std::string reason = errnoText(refusal.error);
  return refusal.message.empty() || namesNoCause(refusal.message) ? reason
                                                                  : reason + ": " + refusal.message;
}

int dumpError(std::string_view dump) {
  int found = EBADMSG;
  eachMessage(dump, [&](const nlmsghdr& header, std::string_view bytes) {
    const bool ends = header.nlmsg_type == NLMSG_DONE || header.nlmsg_type == NLMSG_ERROR;
    if (!ends || bytes.size() < sizeof header) {
      return;
    }
    // Both begin with a negative errno; old kernels omit it at the end of a dump.
    int error = 0;
    if (bytes.size() >= sizeof header + sizeof error) {
      std::memcpy(&error, bytes.data() + sizeof header, sizeof error);
    }
    found = error > 0 || error < -4095 ? EBADMSG : -error;
  });
  return found;
}

bool wasInterrupted(std::string_view dump) {
  bool interrupted = false;
  eachMessage(dump, [&](const nlmsghdr& header, std::string_view) {
    interrupted = interrupted || (header.nlmsg_flags & NLM_F_DUMP_INTR) != 0;
  });
  return interrupted;
}

}  // namespace vfpass::host
