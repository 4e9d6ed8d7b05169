// A reply of the guest agent, from inside the guest.
// covers: src/guest/agent/reply.cpp src/base/bounded_read.cpp src/base/json_reader.cpp -requireText
// -requireFlag -requireObject -requireList -requireWhole -refuse -refuseType -badJson -failure
// -tooLong -readMore -sizeText -readBounded -readBoundedFile -BoundedLines -distrustOf
#include "vfpass/agent/reply.hpp"

#include "fuzz/target.hpp"
#include "vfpass/base/json_reader.hpp"

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
    const JsonReader member = JsonReader(*reply)[name];
    require(member.textOr("").empty() || member.json().is_string(), "only a text reads as a text");
    require(!member.flagOr(false) || member.json() == true, "only true reads as true");
    for (const JsonReader& each : member.listOrEmpty()) {
      static_cast<void>(each.numberOr(0));
      static_cast<void>(each.figureOrNone());
    }
  }
}

}  // namespace vfpass::fuzz
