#include "vfpass/agent/reply.hpp"

#include <nettle/base64.h>

#include <cstdint>

#include "vfpass/base/json_reader.hpp"

namespace vfpass::agent {
namespace {

// Printing a tree that is much deeper overflows the stack.
constexpr JsonLimits replyLimits{std::size_t{4} << 20U, 32};

const JsonSource replySource{"invalid reply from the guest agent",
                             "check that the agent in the guest is qemu-guest-agent"};

}  // namespace

nlohmann::json parseReply(std::string_view text) {
  return parseJson(text, replyLimits, replySource);
}

std::string decodeBase64(std::string_view text) {
  base64_decode_ctx context;
  base64_decode_init(&context);
  std::string decoded(BASE64_DECODE_LENGTH(text.size()), '\0');
  std::size_t length = decoded.size();
  auto* bytes = reinterpret_cast<std::uint8_t*>(decoded.data());
  if (base64_decode_update(&context, &length, bytes, text.size(), text.data()) != 1 ||
      base64_decode_final(&context) != 1) {
    throw badJson(replySource, "the captured output is not base64");
  }
  decoded.resize(length);
  return decoded;
}

std::string encodeBase64(std::string_view bytes) {
  std::string encoded(BASE64_ENCODE_RAW_LENGTH(bytes.size()), '\0');
  base64_encode_raw(encoded.data(), bytes.size(),
                    reinterpret_cast<const std::uint8_t*>(bytes.data()));
  return encoded;
}

}  // namespace vfpass::agent
