#include "vfpass/model/record.hpp"

#include "vfpass/base/pci_files.hpp"
#include "vfpass/base/text.hpp"

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

std::string decodeHex(const JsonReader& json) {
  ObjectReader reader(json);
  std::string hex;
  reader("hex", hex);
  reader.refuseUnknownMembers();
  std::vector<std::uint8_t> bytes(hex.size() / 2);
  if (hex.size() % 2 != 0 || !parseHexBytes(hex, 0, bytes)) {
    json.refuse("bytes are not hexadecimal");
  }
  return {bytes.begin(), bytes.end()};
}

}  // namespace

Json encodeText(const std::string& text) {
  if (isUtf8(text)) {
    return text;
  }
  const std::vector<std::uint8_t> bytes(text.begin(), text.end());
  return Json::object({{"hex", hexBytes(bytes, "")}});
}

std::string decodeText(const JsonReader& json) {
  return json.json().is_object() ? decodeHex(json) : json.requireText();
}

Json parseRecord(std::string_view text) { return parseBoundedJson(text, recordLimits); }

JsonReader ObjectReader::find(const char* name) {
  known_.insert(name);
  return object_[name];
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
    throw JsonRefused("member '" + std::string(name) + "' is not a valid driver name");
  }
}

void ObjectReader::refuseUnknownMembers() const {
  for (const auto& [name, value] : object_.json().items()) {
    if (!known_.contains(name) && !object_.source().allowsUnknownMembers) {
      object_.refuse("unknown member '" + name + "'");
    }
  }
}

}  // namespace vfpass::model
