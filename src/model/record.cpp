#include "vfpass/model/record.hpp"

#include "vfpass/base/bounded_read.hpp"
#include "vfpass/base/driver_name.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/error.hpp"

namespace vfpass::model {
namespace {

// A plan for a domain with a hundred VFs stays well below a megabyte and seven levels.
constexpr JsonLimits recordLimits{std::size_t{8} << 20U, 32, maxRecordValues};

bool isUtf8(const std::string& text) {
  try {
    static_cast<void>(Json(text).dump());
    return true;
  } catch (const Json::type_error&) {
    return false;
  }
}

std::string decodeHex(const Json& json) {
  ObjectReader reader(json);
  std::string hex;
  reader("hex", hex);
  reader.refuseUnknownMembers();
  std::vector<std::uint8_t> bytes(hex.size() / 2);
  if (hex.size() % 2 != 0 || !parseHexBytes(hex, 0, bytes)) {
    throwUnknownRecord("bytes are not hexadecimal");
  }
  return {bytes.begin(), bytes.end()};
}

}  // namespace

void throwUnknownRecord(const std::string& what) { throw RecordRefused(what, false); }

void throwDamagedRecord(const std::string& what) { throw RecordRefused(what, true); }

Json encodeText(const std::string& text) {
  if (isUtf8(text)) {
    return text;
  }
  const std::vector<std::uint8_t> bytes(text.begin(), text.end());
  return Json::object({{"hex", hexBytes(bytes, "")}});
}

std::string decodeText(const Json& json) {
  if (json.is_object()) {
    return decodeHex(json);
  }
  if (!json.is_string()) {
    throwUnknownRecord("expected text");
  }
  return json.get<std::string>();
}

std::uint64_t decodeNumber(const Json& json, std::uint64_t maximum) {
  if (!json.is_number_unsigned() || json.get<std::uint64_t>() > maximum) {
    throwUnknownRecord("expected a number up to " + std::to_string(maximum));
  }
  return json.get<std::uint64_t>();
}

bool decodeBool(const Json& json) {
  if (!json.is_boolean()) {
    throwUnknownRecord("expected true or false");
  }
  return json.get<bool>();
}

Json parseRecord(std::string_view text) {
  try {
    return parseBoundedJson(text, recordLimits);
  } catch (const JsonRefused& reason) {
    throwDamagedRecord(reason.what());
  }
}

ObjectReader::ObjectReader(const Json& object) : object_(object) {
  if (!object.is_object()) {
    throwUnknownRecord("expected an object");
  }
}

const Json* ObjectReader::find(const char* name) {
  known_.insert(name);
  const auto member = object_.find(name);
  return member == object_.end() ? nullptr : &*member;
}

void ObjectWriter::driver(const char* name, const std::string& value) {
  if (!value.empty() && !isDriverName(value)) {
    throw Error("cannot restore driver '" + printable(value) + "' later: not a valid driver name",
                "unbind that driver, then try again", ExitCode::refused);
  }
  (*this)(name, value);
}

void ObjectReader::driver(const char* name, std::string& value) {
  (*this)(name, value);
  if (!value.empty() && !isDriverName(value)) {
    throwDamagedRecord("member '" + std::string(name) + "' is not a valid driver name");
  }
}

void ObjectReader::refuseUnknownMembers() const {
  for (const auto& [name, value] : object_.items()) {
    if (!known_.contains(name)) {
      throwUnknownRecord("unknown member '" + name + "'");
    }
  }
}

}  // namespace vfpass::model
