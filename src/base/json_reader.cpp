#include "vfpass/base/json_reader.hpp"

#include <cmath>

#include "vfpass/base/text.hpp"

namespace vfpass {

const JsonSource JsonReader::unnamed{"invalid JSON"};

Error badJson(const JsonSource& source, const std::string& reason) {
  return Error(source.message + ": " + printable(reason), source.remedy, source.code);
}

nlohmann::json parseJson(std::string_view text, const JsonLimits& limits,
                         const JsonSource& source) {
  try {
    return parseBoundedJson(text, limits);
  } catch (const JsonRefused& refused) {
    throw badJson(source, refused.what());
  }
}

JsonReader::JsonReader(const Json& document, const JsonSource& source)
    : JsonReader(&document, &source, "") {}

JsonReader JsonReader::operator[](const std::string& name) const {
  const bool isObject = value_ != nullptr && value_->is_object();
  const auto found = isObject ? value_->find(name) : Json::const_iterator();
  const Json* member = isObject && found != value_->end() ? &*found : nullptr;
  return {member, source_, path_.empty() ? name : path_ + "." + name};
}

const nlohmann::json& JsonReader::json() const {
  static const Json null;
  return isMissing() ? null : *value_;
}

std::string JsonReader::requireText() const {
  if (!json().is_string()) {
    refuseType("text");
  }
  return value_->get<std::string>();
}

bool JsonReader::requireFlag() const {
  if (!json().is_boolean()) {
    refuseType("true or false");
  }
  return value_->get<bool>();
}

const JsonReader& JsonReader::requireObject() const {
  if (!json().is_object()) {
    refuseType("an object");
  }
  return *this;
}

JsonReader::Elements JsonReader::requireList(std::size_t most) const {
  if (!json().is_array() || value_->size() > most) {
    refuseType(most == SIZE_MAX ? "a list" : "a list of at most " + std::to_string(most));
  }
  return Elements(*this);
}

std::string JsonReader::textOr(const std::string& other) const {
  return json().is_string() ? value_->get<std::string>() : other;
}

std::optional<bool> JsonReader::flagOrNone() const {
  return json().is_boolean() ? std::optional(value_->get<bool>()) : std::nullopt;
}

std::uint64_t JsonReader::numberOr(std::uint64_t other) const {
  return whole(UINT64_MAX).value_or(other);
}

std::optional<double> JsonReader::figureOrNone() const {
  const double figure = json().is_number() ? value_->get<double>() : std::nan("");
  return std::isfinite(figure) ? std::optional(figure) : std::nullopt;
}

JsonReader::Elements JsonReader::listOrEmpty() const { return Elements(*this); }

void JsonReader::refuse(const std::string& reason) const {
  throw badJson(*source_, path_.empty() ? reason : reason + " at '" + path_ + "'");
}

void JsonReader::refuseType(const std::string& expected) const {
  if (isMissing()) {
    throw badJson(*source_, "member '" + path_ + "' is missing: expected " + expected);
  }
  refuse("expected " + expected);
}

// get() converts everything: 70000 into 4464 of 16 bits, -1 into 4294967295, and true into 1. For a
// fraction that is too large, the conversion is undefined.
std::optional<std::uint64_t> JsonReader::whole(std::uint64_t largest) const {
  const bool isWhole = json().is_number_unsigned() ||
                       (json().is_number_integer() && value_->get<std::int64_t>() >= 0);
  const std::uint64_t number = isWhole ? value_->get<std::uint64_t>() : 0;
  return isWhole && number <= largest ? std::optional(number) : std::nullopt;
}

std::uint64_t JsonReader::requireWhole(std::uint64_t largest) const {
  const auto number = whole(largest);
  if (!number) {
    refuseType("a number up to " + std::to_string(largest));
  }
  return *number;
}

std::size_t JsonReader::Elements::size() const {
  return list_.json().is_array() ? list_.json().size() : 0;
}

JsonReader JsonReader::Elements::operator[](std::size_t index) const {
  return {&list_.json().at(index), list_.source_, list_.path_ + "[" + std::to_string(index) + "]"};
}

}  // namespace vfpass
