// A message of the other probe, on the control channel of a transfer.
// covers: src/probe/channel/json_reader.cpp
#include <nlohmann/json.hpp>

#include "channel/json_reader.hpp"
#include "fuzz/target.hpp"

namespace vfpass::fuzz {

void runTarget(std::string_view input) {
  const auto message = accepted([&] { return probe::parseMessage(input); });
  if (!message) {
    return;
  }
  require(probe::parseMessage(message->dump()) == *message,
          "a message that is written reads the same");
  const auto number = accepted([&] { return probe::numberMember(*message, "number", 100); });
  require(!number || *number <= 100, "a number is not larger than its limit");
  accepted([&] { return probe::flagMember(*message, "flag"); });
  accepted([&] { return probe::textMember(*message, "type"); });
  accepted([&] { return probe::objectMember(*message, "object").size(); });
  const auto list = accepted([&] { return probe::listMember(*message, "list", 4).size(); });
  require(!list || *list <= 4, "a list is not longer than its limit");
  for (const auto& value : *message) {
    const auto each = accepted([&] { return probe::numberIn(value, "list", 100); });
    require(!each || *each <= 100, "a number of a list is not larger than its limit");
  }
}

}  // namespace vfpass::fuzz
