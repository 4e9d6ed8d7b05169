#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "vfpass/base/bounded_read.hpp"
#include "vfpass/error.hpp"

namespace vfpass {

/// Where a document came from, for the Error of a strict read: `MESSAGE: REASON at 'PATH'`.
struct JsonSource {
  std::string message;  ///< such as `invalid reply from the guest agent`
  std::string remedy = {};
  ExitCode code = ExitCode::failed;
  bool allowsUnknownMembers = false;  ///< in the records that model::decode() reads
};

/// The Error for a document of this source. `reason` may quote it.
Error badJson(const JsonSource& source, const std::string& reason);

/// parseBoundedJson() that throws Error.
nlohmann::json parseJson(std::string_view text, const JsonLimits& limits, const JsonSource& source);

/// A value of a document that another program wrote, and its place there. Reads in two modes:
///
/// - strict, `require...`: throws Error for a value that is missing, of another type or out of
///   range. The Error names the source, the path of the value and the expected type.
/// - lenient, `...Or...`: such a value reads as the one that the caller names, or as none.
///
/// Numbers are whole and not negative, unless the name says otherwise. The document and the source
/// must outlive the reader.
class JsonReader {
 public:
  using Json = nlohmann::json;
  class Elements;

  /// A reader without a source is for lenient reads.
  explicit JsonReader(const Json& document, const JsonSource& source = unnamed);
  explicit JsonReader(const Json&& document, const JsonSource& source = unnamed) = delete;

  /// A member. It is missing if this value is not an object or lacks it.
  JsonReader operator[](const std::string& name) const;

  [[nodiscard]] bool isMissing() const { return value_ == nullptr; }
  [[nodiscard]] const Json& json() const;  ///< null if it is missing
  [[nodiscard]] const JsonSource& source() const { return *source_; }

  [[nodiscard]] std::string requireText() const;
  [[nodiscard]] bool requireFlag() const;
  template <std::integral Number = std::uint64_t>
  [[nodiscard]] Number requireNumber(Number largest = std::numeric_limits<Number>::max()) const {
    return static_cast<Number>(requireWhole(static_cast<std::uint64_t>(largest)));
  }
  /// This value, which is an object.
  [[nodiscard]] const JsonReader& requireObject() const;
  [[nodiscard]] Elements requireList(std::size_t most = SIZE_MAX) const;
  /// A text for which `parse` returns a value.
  template <typename Parse>
  [[nodiscard]] auto requireParsed(Parse parse) const {
    const std::string text = requireText();
    auto parsed = parse(text);
    if (!parsed) {
      refuse("unknown value '" + text + "'");
    }
    return *std::move(parsed);
  }

  [[nodiscard]] std::string textOr(const std::string& other) const;
  [[nodiscard]] bool flagOr(bool other) const { return flagOrNone().value_or(other); }
  [[nodiscard]] std::optional<bool> flagOrNone() const;
  [[nodiscard]] std::uint64_t numberOr(std::uint64_t other) const;
  template <std::integral Number>
  [[nodiscard]] std::optional<Number> numberOrNone(
      Number largest = std::numeric_limits<Number>::max()) const {
    const auto number = whole(static_cast<std::uint64_t>(largest));
    return number ? std::optional(static_cast<Number>(*number)) : std::nullopt;
  }
  /// Any number that is finite.
  [[nodiscard]] std::optional<double> figureOrNone() const;
  [[nodiscard]] Elements listOrEmpty() const;

  /// Throws the Error of strict reads.
  [[noreturn]] void refuse(const std::string& reason) const;
  [[noreturn]] void refuseType(const std::string& expected) const;

 private:
  static const JsonSource unnamed;

  JsonReader(const Json* value, const JsonSource* source, std::string path)
      : value_(value), source_(source), path_(std::move(path)) {}
  [[nodiscard]] std::optional<std::uint64_t> whole(std::uint64_t largest) const;
  [[nodiscard]] std::uint64_t requireWhole(std::uint64_t largest) const;

  const Json* value_;  // null: missing
  const JsonSource* source_;
  std::string path_;  // from the document: `runs[0].settings`
};

/// The elements of a list.
class JsonReader::Elements {
 public:
  class Iterator {
   public:
    Iterator(const Elements& elements, std::size_t index) : elements_(&elements), index_(index) {}
    JsonReader operator*() const { return (*elements_)[index_]; }
    Iterator& operator++() {
      ++index_;
      return *this;
    }
    bool operator==(const Iterator&) const = default;

   private:
    const Elements* elements_;
    std::size_t index_;
  };

  /// No elements unless it is a list.
  explicit Elements(JsonReader list) : list_(std::move(list)) {}

  [[nodiscard]] std::size_t size() const;
  [[nodiscard]] bool empty() const { return size() == 0; }
  JsonReader operator[](std::size_t index) const;
  [[nodiscard]] JsonReader front() const { return (*this)[0]; }
  [[nodiscard]] JsonReader back() const { return (*this)[size() - 1]; }
  [[nodiscard]] Iterator begin() const { return {*this, 0}; }
  [[nodiscard]] Iterator end() const { return {*this, size()}; }

 private:
  JsonReader list_;
};

}  // namespace vfpass
