// A message of the other probe, on the control channel of a transfer.
// covers: src/base/json_reader.cpp -textOr -flagOrNone -numberOr -figureOrNone
#include <nlohmann/json.hpp>

#include "channel/channel.hpp"
#include "fuzz/target.hpp"

namespace vfpass::fuzz {

void runTarget(std::string_view input) {
  const auto message = accepted([&] { return probe::parseMessage(input); });
  if (!message) {
    return;
  }
  require(probe::parseMessage(message->dump()) == *message,
          "a message that is written reads the same");
  const JsonReader reader = probe::readerOf(*message);
  const auto number = accepted([&] { return reader["number"].requireNumber(100); });
  require(!number || *number <= 100, "a number is not larger than its limit");
  accepted([&] { return reader["flag"].requireFlag(); });
  accepted([&] { return reader["type"].requireText(); });
  accepted([&] { return reader["object"].requireObject().json().size(); });
  const auto list = accepted([&] { return reader["list"].requireList(4).size(); });
  require(!list || *list <= 4, "a list is not longer than its limit");
  for (const JsonReader& value : reader["list"].listOrEmpty()) {
    const auto each = accepted([&] { return value.requireNumber(100); });
    require(!each || *each <= 100, "a number of a list is not larger than its limit");
  }
}

}  // namespace vfpass::fuzz
