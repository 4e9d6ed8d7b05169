// A reply of the guest agent, from inside the guest.
// covers: src/guest/agent/reply.cpp src/base/bounded_json.cpp
#include "vfpass/agent/reply.hpp"

#include "fuzz/target.hpp"

namespace vfpass::fuzz {

void runTarget(std::string_view input) {
  if (const auto bytes = accepted([&] { return agent::decodeBase64(input); })) {
    require(agent::decodeBase64(agent::encodeBase64(*bytes)) == *bytes,
            "bytes that are encoded again decode to the same bytes");
  }
  require(agent::decodeBase64(agent::encodeBase64(input)) == input, "all bytes can be encoded");
  const auto reply = accepted([&] { return agent::parseReply(input); });
  if (!reply) {
    return;
  }
  require(agent::parseReply(reply->dump()) == *reply, "a reply that is written reads the same");
  for (const char* name : {"return", "out-data", "exited", "supported_commands", ""}) {
    static_cast<void>(agent::textMember(*reply, name));
    static_cast<void>(agent::flagMember(*reply, name));
    require(agent::listMember(*reply, name).is_array(), "a list member reads as a list");
  }
}

}  // namespace vfpass::fuzz
