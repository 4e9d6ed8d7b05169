#pragma once

#include <concepts>
#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "vfpass/base/json_reader.hpp"
#include "vfpass/inventory.hpp"
#include "vfpass/lease.hpp"
#include "vfpass/mac_guid_uuid.hpp"
#include "vfpass/mapping.hpp"
#include "vfpass/pci_address.hpp"
#include "vfpass/vf_attributes.hpp"

namespace vfpass::model {

using Json = nlohmann::json;

/// Text as JSON. Bytes that are not UTF-8 (a VPD serial number may contain any) become `{"hex":
/// "..."}`, because nlohmann-json throws when it dumps them.
Json encodeText(const std::string& text);
std::string decodeText(const JsonReader& json);

/// More members and elements than a record with a hundred leases has.
inline constexpr std::size_t maxRecordValues = 100'000;

/// Parses one record, with limits on its size, depth and number of values. Throws JsonRefused.
Json parseRecord(std::string_view text);

/// The inverse of `toString` for types that are stored that way; nullptr for all others.
template <typename Value>
inline constexpr std::nullptr_t parserOf = nullptr;
template <>
inline constexpr auto parserOf<PciAddress> = parsePciAddress;
template <>
inline constexpr auto parserOf<MacAddress> = parseMacAddress;
template <>
inline constexpr auto parserOf<Guid> = parseGuid;
template <>
inline constexpr auto parserOf<Uuid> = parseUuid;
template <>
inline constexpr auto parserOf<Attribute> = parseAttribute;
template <>
inline constexpr auto parserOf<LinkState> = parseLinkState;
template <>
inline constexpr auto parserOf<VlanProtocol> = parseVlanProtocol;
template <>
inline constexpr auto parserOf<Allowance> = parseAllowance;
template <>
inline constexpr auto parserOf<LeaseState> = parseLeaseState;
template <>
inline constexpr auto parserOf<LeaseKind> = parseLeaseKind;
template <>
inline constexpr auto parserOf<ControllerModel> = parseControllerModel;
template <>
inline constexpr auto parserOf<EditPlace> = parseEditPlace;
template <>
inline constexpr auto parserOf<EswitchMode> = parseEswitchMode;
template <>
inline constexpr auto parserOf<NvlinkMode> = parseNvlinkMode;

template <typename Value>
concept Spelled = !std::is_null_pointer_v<std::remove_const_t<decltype(parserOf<Value>)>>;

/// Members that are named by data.
template <typename Value>
concept Table = requires {
  typename Value::mapped_type;
};

template <typename Value>
concept Sequence = requires(Value value) {
  typename Value::value_type;
  value.begin();
  value.insert(value.end(), *value.begin());
}
&&!std::same_as<Value, std::string> && !Table<Value>;

template <typename Value>
Json encode(const Value& value);
/// Throws Error of the source for a record that another version wrote (unknown or missing members,
/// or an unknown value), and JsonRefused for one that no version writes.
template <typename Value>
Value decode(const JsonReader& json);

/// Writes the members named by the `fields` of a type. Omits an empty optional.
class ObjectWriter {
 public:
  template <typename Value>
  void operator()(const char* name, const Value& value) {
    object_[name] = encode(value);
  }
  template <typename Value>
  void operator()(const char* name, const std::optional<Value>& value) {
    if (value) {
      object_[name] = encode(*value);
    }
  }
  template <typename Value>
  void orNull(const char* name, const std::optional<Value>& value) {
    object_[name] = value ? encode(*value) : Json();
  }
  /// Omitted if empty.
  template <typename Value>
  requires Sequence<Value> || std::same_as<Value, std::string>
  void orEmpty(const char* name, const Value& value) {
    if (!value.empty()) {
      object_[name] = encode(value);
    }
  }
  /// Omitted if false.
  void orFalse(const char* name, bool value) {
    if (value) {
      object_[name] = value;
    }
  }
  /// The name of a kernel driver, or empty for none. Throws Error for a name that driver() could
  /// not read back.
  void driver(const char* name, const std::string& value);
  template <typename Value>
  void checked(const char* name, const Value& value, bool (*)(const Value&)) {
    (*this)(name, value);
  }
  [[nodiscard]] Json take() { return std::move(object_); }

 private:
  Json object_ = Json::object();
};

/// Reads the members named by the `fields` of a type. Missing and unknown members are errors:
/// another version wrote them, and guessing could roll back the wrong thing.
class ObjectReader {
 public:
  explicit ObjectReader(const JsonReader& object) : object_(object.requireObject()) {}

  template <typename Value>
  void operator()(const char* name, Value& value) {
    value = decode<Value>(find(name));
  }
  template <typename Value>
  void operator()(const char* name, std::optional<Value>& value) {
    const JsonReader member = find(name);
    value = member.isMissing() ? std::nullopt : std::optional<Value>(decode<Value>(member));
  }
  template <typename Value>
  void orNull(const char* name, std::optional<Value>& value) {
    const JsonReader member = find(name);
    const bool isNull = !member.isMissing() && member.json().is_null();
    value = isNull ? std::nullopt : std::optional<Value>(decode<Value>(member));
  }
  /// Empty if the member is missing: earlier versions did not write it.
  template <typename Value>
  requires Sequence<Value> || std::same_as<Value, std::string>
  void orEmpty(const char* name, Value& value) {
    const JsonReader member = find(name);
    value = member.isMissing() ? Value() : decode<Value>(member);
  }
  /// False if the member is missing: earlier versions did not write it.
  void orFalse(const char* name, bool& value) {
    const JsonReader member = find(name);
    value = !member.isMissing() && decode<bool>(member);
  }
  /// Refuses an invalid driver name: it becomes part of a sysfs path.
  void driver(const char* name, std::string& value);
  /// Refuses a value for which `isValid` is false.
  template <typename Value>
  void checked(const char* name, Value& value, bool (*isValid)(const Value&)) {
    (*this)(name, value);
    if (!isValid(value)) {
      object_.refuse("member '" + std::string(name) + "' has an invalid value");
    }
  }
  /// Call after every `fields`.
  void refuseUnknownMembers() const;

 private:
  JsonReader find(const char* name);

  JsonReader object_;
  std::set<std::string, std::less<>> known_;
};

template <typename Value>
Json encode(const Value& value) {
  if constexpr (std::same_as<Value, bool>) {
    return value;
  } else if constexpr (std::unsigned_integral<Value>) {
    return static_cast<std::uint64_t>(value);
  } else if constexpr (std::same_as<Value, std::string>) {
    return encodeText(value);
  } else if constexpr (Spelled<Value>) {
    return std::string(toString(value));
  } else if constexpr (Sequence<Value>) {
    Json array = Json::array();
    for (const auto& element : value) {
      array.push_back(encode(element));
    }
    return array;
  } else if constexpr (Table<Value>) {
    Json object = Json::object();
    for (const auto& [name, member] : value) {
      object[name] = encode(member);
    }
    return object;
  } else {
    ObjectWriter writer;
    Value copy = value;  // `fields` is for readers and writers, so it takes a non-const reference
    fields(writer, copy);
    return writer.take();
  }
}

template <Sequence Value>
Value decodeSequence(const JsonReader& json) {
  Value sequence;
  for (const JsonReader& element : json.requireList()) {
    sequence.insert(sequence.end(), decode<typename Value::value_type>(element));
  }
  return sequence;
}

template <Table Value>
Value decodeTable(const JsonReader& json) {
  Value table;
  for (const auto& [name, member] : json.requireObject().json().items()) {
    table[name] = decode<typename Value::mapped_type>(json[name]);
  }
  return table;
}

template <typename Value>
Value decode(const JsonReader& json) {
  if constexpr (std::same_as<Value, bool>) {
    return json.requireFlag();
  } else if constexpr (std::unsigned_integral<Value>) {
    return json.requireNumber<Value>();
  } else if constexpr (std::same_as<Value, std::string>) {
    return decodeText(json);
  } else if constexpr (Spelled<Value>) {
    return json.requireParsed(parserOf<Value>);
  } else if constexpr (Sequence<Value>) {
    return decodeSequence<Value>(json);
  } else if constexpr (Table<Value>) {
    return decodeTable<Value>(json);
  } else {
    ObjectReader reader(json);
    Value value;
    fields(reader, value);
    reader.refuseUnknownMembers();
    return value;
  }
}

}  // namespace vfpass::model
