#include "vfpass/agent/reply.hpp"

#include <nettle/base64.h>

#include <cstdint>

#include "vfpass/base/bounded_read.hpp"
#include "vfpass/error.hpp"

namespace vfpass::agent {
namespace {

using Json = nlohmann::json;

// Printing a tree that is much deeper overflows the stack.
constexpr JsonLimits replyLimits{std::size_t{4} << 20U, 32};

Error badReply(const std::string& reason) {
  return Error("invalid reply from the guest agent: " + reason,
               "check that the agent in the guest is qemu-guest-agent");
}

}  // namespace

Json parseReply(std::string_view text) {
  try {
    return parseBoundedJson(text, replyLimits);
  } catch (const JsonRefused& reason) {
    throw badReply(reason.what());
  }
}

std::string decodeBase64(std::string_view text) {
  base64_decode_ctx context;
  base64_decode_init(&context);
  std::string decoded(BASE64_DECODE_LENGTH(text.size()), '\0');
  std::size_t length = decoded.size();
  auto* bytes = reinterpret_cast<std::uint8_t*>(decoded.data());
  if (base64_decode_update(&context, &length, bytes, text.size(), text.data()) != 1 ||
      base64_decode_final(&context) != 1) {
    throw badReply("the captured output is not base64");
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

const Json& member(const Json& object, const char* name) {
  static const Json none;
  const auto found = object.is_object() ? object.find(name) : object.end();
  return object.is_object() && found != object.end() ? *found : none;
}

std::string textMember(const Json& object, const char* name) {
  const Json& value = member(object, name);
  return value.is_string() ? value.get<std::string>() : std::string();
}

std::uint64_t countMember(const Json& object, const char* name) {
  const Json& value = member(object, name);
  return value.is_number_unsigned() ? value.get<std::uint64_t>() : 0;
}

bool flagMember(const Json& object, const char* name) {
  const Json& value = member(object, name);
  return value.is_boolean() && value.get<bool>();
}

const Json& listMember(const Json& object, const char* name) {
  static const Json none = Json::array();
  const Json& value = member(object, name);
  return value.is_array() ? value : none;
}

}  // namespace vfpass::agent
