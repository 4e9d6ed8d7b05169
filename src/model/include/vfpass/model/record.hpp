#pragma once

#include <concepts>
#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "vfpass/identifiers.hpp"
#include "vfpass/lease.hpp"
#include "vfpass/mapping.hpp"
#include "vfpass/pci_address.hpp"
#include "vfpass/pf_settings.hpp"
#include "vfpass/vf_settings.hpp"

namespace vfpass::model {

using Json = nlohmann::json;

/// Why a record cannot be read, as a phrase for the error of whoever stores it. Quotes values of
/// the record unescaped.
class RecordRefused : public std::runtime_error {
 public:
  /// `damaged`: no version of vfpass writes this. Otherwise another version may have written it:
  /// unknown or missing members, or an unknown value.
  RecordRefused(const std::string& what, bool damaged)
      : std::runtime_error(what), isDamaged(damaged) {}

  const bool isDamaged;
};

[[noreturn]] void throwUnknownRecord(const std::string& what);
[[noreturn]] void throwDamagedRecord(const std::string& what);

/// Text as JSON. Bytes that are not UTF-8 (a VPD serial number may contain any) become `{"hex":
/// "..."}`, because nlohmann-json throws when it dumps them.
Json encodeText(const std::string& text);
std::string decodeText(const Json& json);
std::uint64_t decodeNumber(const Json& json, std::uint64_t maximum);
bool decodeBool(const Json& json);

/// More members and elements than a record with a hundred leases has.
inline constexpr std::size_t maxRecordValues = 100'000;

/// Parses one record, with limits on its size, depth and number of values. Throws RecordRefused
/// (damaged) for invalid JSON.
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

template <typename Value>
concept Spelled = !std::is_null_pointer_v<std::remove_const_t<decltype(parserOf<Value>)>>;

template <typename Value>
concept Sequence = requires(Value value) {
  typename Value::value_type;
  value.begin();
  value.insert(value.end(), *value.begin());
}
&&!std::same_as<Value, std::string>;

template <typename Value>
Json encode(const Value& value);
template <typename Value>
Value decode(const Json& json);

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
  /// Omitted if empty.
  template <Sequence Value>
  void orEmpty(const char* name, const Value& value) {
    if (!value.empty()) {
      object_[name] = encode(value);
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
  explicit ObjectReader(const Json& object);

  template <typename Value>
  void operator()(const char* name, Value& value) {
    const Json* member = find(name);
    if (member == nullptr) {
      throwUnknownRecord("member '" + std::string(name) + "' is missing");
    }
    value = decode<Value>(*member);
  }
  template <typename Value>
  void operator()(const char* name, std::optional<Value>& value) {
    const Json* member = find(name);
    value = member == nullptr ? std::nullopt : std::optional<Value>(decode<Value>(*member));
  }
  /// Empty if the member is missing: earlier versions did not write it.
  template <Sequence Value>
  void orEmpty(const char* name, Value& value) {
    const Json* member = find(name);
    value = member == nullptr ? Value() : decode<Value>(*member);
  }
  /// Refuses an invalid driver name: it becomes part of a sysfs path.
  void driver(const char* name, std::string& value);
  /// Refuses a value for which `isValid` is false.
  template <typename Value>
  void checked(const char* name, Value& value, bool (*isValid)(const Value&)) {
    (*this)(name, value);
    if (!isValid(value)) {
      throwUnknownRecord("member '" + std::string(name) + "' has an invalid value");
    }
  }
  /// Call after every `fields`.
  void refuseUnknownMembers() const;

 private:
  const Json* find(const char* name);

  const Json& object_;
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
  } else {
    ObjectWriter writer;
    Value copy = value;  // `fields` is for readers and writers, so it takes a non-const reference
    fields(writer, copy);
    return writer.take();
  }
}

template <Spelled Value>
Value decodeSpelled(const Json& json) {
  const std::string text = decodeText(json);
  const std::optional<Value> value = parserOf<Value>(text);
  if (!value) {
    throwUnknownRecord("unknown value '" + text + "'");
  }
  return *value;
}

template <Sequence Value>
Value decodeSequence(const Json& json) {
  if (!json.is_array()) {
    throwUnknownRecord("expected a list");
  }
  Value sequence;
  for (const Json& element : json) {
    sequence.insert(sequence.end(), decode<typename Value::value_type>(element));
  }
  return sequence;
}

template <typename Value>
Value decode(const Json& json) {
  if constexpr (std::same_as<Value, bool>) {
    return decodeBool(json);
  } else if constexpr (std::unsigned_integral<Value>) {
    return static_cast<Value>(decodeNumber(json, std::numeric_limits<Value>::max()));
  } else if constexpr (std::same_as<Value, std::string>) {
    return decodeText(json);
  } else if constexpr (Spelled<Value>) {
    return decodeSpelled<Value>(json);
  } else if constexpr (Sequence<Value>) {
    return decodeSequence<Value>(json);
  } else {
    ObjectReader reader(json);
    Value value;
    fields(reader, value);
    reader.refuseUnknownMembers();
    return value;
  }
}

}  // namespace vfpass::model
