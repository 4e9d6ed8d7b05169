#include "channel/channel.hpp"

#include "vfpass/base/text.hpp"

namespace vfpass::probe {

using Json = nlohmann::json;

namespace {

constexpr int deepestMessage = 8;

const JsonSource messageSource{"the other side sent an invalid message",
                               "run the same build of vfpass-probe on both sides"};

}  // namespace

Json parseMessage(std::string_view text) {
  return parseJson(text, {largestMessage, deepestMessage}, messageSource);
}

JsonReader readerOf(const Json& message) { return JsonReader(message, messageSource); }

void requireTimeLeft(const Deadline& deadline, const std::string& doing) {
  if (deadline.over()) {
    throw Error("deadline expired while " + doing,
                "use a longer --deadline, or fewer or smaller messages");
  }
}

void Channel::send(const Json& message) {
  transport_->send(message.dump(-1, ' ', true, Json::error_handler_t::replace), deadline_);
}

Json Channel::receiveAny() {
  const auto text = transport_->receive(deadline_);
  return text ? parseMessage(*text) : Json{{"type", "end"}};
}

Json Channel::receive(const std::string& type) {
  Json message = receiveAny();
  const std::string got = readerOf(message)["type"].requireText();
  if (got == "failed") {
    throwFailure(message);
  }
  if (got != type) {
    throw Error(
        "the other side " + (got == "end" ? "closed the connection"
                                          : "sent " + printable(got) + " instead of " + type),
        "check its output");
  }
  return message;
}

void Channel::sendFailure(const Error& error) {
  try {
    send({{"type", "failed"}, {"error", error.what()}, {"remedy", error.remedy()}});
  } catch (const Error&) {
    // The other side is gone; the original error counts.
  }
}

void throwFailure(const Json& message) {
  const JsonReader failure = readerOf(message);
  throw Error("the other side failed: " + printable(failure["error"].requireText()),
              printable(failure["remedy"].requireText()));
}

}  // namespace vfpass::probe
