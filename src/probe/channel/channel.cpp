#include "channel/channel.hpp"

#include <nlohmann/json.hpp>

#include "channel/json_reader.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/error.hpp"

namespace vfpass::probe {

using Json = nlohmann::json;

void Channel::send(const Json& message) {
  transport_->send(message.dump(-1, ' ', true, Json::error_handler_t::replace), deadline_);
}

Json Channel::receiveAny() {
  const auto text = transport_->receive(deadline_);
  return text ? parseMessage(*text) : Json{{"type", "end"}};
}

Json Channel::receive(const std::string& type) {
  Json message = receiveAny();
  const std::string got = textMember(message, "type");
  if (got == "failed") {
    throw Error("the other side failed: " + printable(textMember(message, "error")),
                printable(textMember(message, "remedy")));
  }
  if (got != type) {
    throw Error(
        "the other side " + (got == "end" ? "closed the connection"
                                          : "sent " + printable(got) + " instead of " + type),
        "check its output");
  }
  return message;
}

}  // namespace vfpass::probe
