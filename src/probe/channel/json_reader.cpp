#include "channel/json_reader.hpp"

#include <nlohmann/json.hpp>

#include "vfpass/base/bounded_read.hpp"
#include "vfpass/error.hpp"

namespace vfpass::probe {
namespace {

using Json = nlohmann::json;

constexpr int deepestMessage = 8;

Error badMessage(const std::string& reason) {
  return Error("the other side sent an invalid message: " + reason,
               "run the same build of vfpass-probe on both sides");
}

const Json& member(const Json& object, const char* name, bool (Json::*hasType)() const noexcept,
                   const char* type) {
  const auto found = object.is_object() ? object.find(name) : object.end();
  if (!object.is_object() || found == object.end() || !((*found).*hasType)()) {
    throw badMessage(std::string("no ") + type + " named " + name);
  }
  return *found;
}

}  // namespace

Json parseMessage(std::string_view text) {
  try {
    return parseBoundedJson(text, {largestMessage, deepestMessage});
  } catch (const JsonRefused& reason) {
    throw badMessage(reason.what());
  }
}

std::uint64_t numberMember(const Json& object, const char* name, std::uint64_t largest) {
  const auto number =
      member(object, name, &Json::is_number_unsigned, "number").get<std::uint64_t>();
  if (number > largest) {
    throw badMessage(std::string(name) + " is too large");
  }
  return number;
}

bool flagMember(const Json& object, const char* name) {
  return member(object, name, &Json::is_boolean, "boolean").get<bool>();
}

std::string textMember(const Json& object, const char* name) {
  return member(object, name, &Json::is_string, "string").get<std::string>();
}

const Json& objectMember(const Json& object, const char* name) {
  return member(object, name, &Json::is_object, "object");
}

const Json& listMember(const Json& object, const char* name, std::size_t most) {
  const Json& list = member(object, name, &Json::is_array, "list");
  if (list.size() > most) {
    throw badMessage(std::string(name) + " is too long");
  }
  return list;
}

std::uint64_t numberIn(const Json& value, const char* list, std::uint64_t largest) {
  if (!value.is_number_unsigned() || value.get<std::uint64_t>() > largest) {
    throw badMessage(std::string(list) + " has an invalid number");
  }
  return value.get<std::uint64_t>();
}

}  // namespace vfpass::probe
