#include "vfpass/base/bounded_read.hpp"

#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

namespace vfpass {
namespace {

using Json = nlohmann::json;
using Event = Json::parse_event_t;

/// Refuses during parsing: nlohmann-json 3.11 itself parses any depth and then overflows the stack
/// in its recursive functions, and it silently keeps one of two duplicate members.
class Guard {
 public:
  explicit Guard(const JsonLimits& limits) : limits_(limits) {}

  void see(int depth, Event event, const Json& parsed) {
    if (event == Event::object_start || event == Event::array_start) {
      requireLevel(depth);
    }
    if (event != Event::object_end && event != Event::array_end && event != Event::key) {
      requireRoom();
    }
    if (event == Event::object_start) {
      open_.emplace_back();
    } else if (event == Event::object_end) {
      open_.pop_back();
    } else if (event == Event::key) {
      requireNew(parsed.get_ref<const std::string&>());
    }
  }

 private:
  void requireLevel(int depth) const {
    if (depth >= limits_.levels) {
      throw JsonRefused("nested more than " + std::to_string(limits_.levels) + " levels deep");
    }
  }

  void requireRoom() {
    if (++values_ > limits_.values) {
      throw JsonRefused("more than " + std::to_string(limits_.values) + " values");
    }
  }

  void requireNew(const std::string& key) {
    if (!open_.back().insert(key).second) {
      throw JsonRefused("an object has a duplicate member");
    }
  }

  JsonLimits limits_;
  std::size_t values_ = 0;
  std::vector<std::set<std::string>> open_;  // the keys of each object that has not ended
};

}  // namespace

Json parseBoundedJson(std::string_view text, const JsonLimits& limits) {
  if (text.size() > limits.bytes) {
    throw JsonRefused("larger than " + sizeText(limits.bytes));
  }
  Guard guard(limits);
  const auto seeEvent = [&](int depth, Event event, const Json& parsed) {
    guard.see(depth, event, parsed);
    return true;
  };
  try {
    return Json::parse(text, seeEvent);
  } catch (const Json::parse_error& error) {
    throw JsonRefused("not valid JSON at byte " + std::to_string(error.byte));
  } catch (const Json::exception&) {  // such as a number that is too large
    throw JsonRefused("not valid JSON");
  }
}

}  // namespace vfpass
