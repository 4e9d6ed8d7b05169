#pragma once

#include <cstdint>
#include <iosfwd>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>

#include "vfpass/lease.hpp"
#include "vfpass/plan.hpp"
#include "vfpass/vf_attributes.hpp"

namespace vfpass::report {

/// Keeps members in insertion order, so that golden files are stable.
using Json = nlohmann::ordered_json;

/// An object whose first member is `schema_version`.
Json newDocument();

/// Indented, with a trailing newline. Replaces bytes that are not UTF-8 instead of throwing, and
/// escapes everything but ASCII: a domain name may contain terminal codes.
void writeDocument(std::ostream& out, const Json& document);

/// Optional text: empty becomes null.
Json textOrNull(const std::string& text);

/// Unobservable values become null.
template <typename Value>
Json valueOrNull(const std::optional<Value>& value) {
  return value ? Json(*value) : Json();
}

/// A list of `toJson(item)` for each item.
template <typename Items, typename ToJson>
Json listJson(const Items& items, const ToJson& toJson) {
  Json list = Json::array();
  for (const auto& item : items) {
    list.push_back(toJson(item));
  }
  return list;
}

/// `{name, uuid}`: the form of a domain in every document.
Json domainJson(const std::string& name, const Uuid& uuid);

/// `{domain, entry, state}` of a lease; null: not leased.
Json leaseJson(const Lease* lease);

/// Steps as in plan.schema.json.
Json stepsJson(const std::vector<Step>& steps);

/// All attributes; unobservable ones are null.
Json settingsJson(const VfSettings& settings);

/// Writes a document with long lists, value by value: the same text as writeDocument(), without the
/// whole document in memory and without an object for each element, which take most of the
/// time of `topo --json` with 4,096 functions (docs/performance.md).
class DocumentWriter {
 public:
  explicit DocumentWriter(std::ostream& out);
  DocumentWriter(const DocumentWriter&) = delete;
  DocumentWriter& operator=(const DocumentWriter&) = delete;
  /// Ends the document.
  ~DocumentWriter();

  /// Members of the object that is written now: the document, or an element of list().
  void text(std::string_view key, std::string_view text);
  void textOrNull(std::string_view key, std::string_view text);  ///< empty text becomes null
  void number(std::string_view key, std::uint64_t number);
  void value(std::string_view key, const Json& value);

  /// A member that is a list of objects; `writeMembers(item)` writes the members of one.
  template <typename Items, typename WriteMembers>
  void list(std::string_view key, const Items& items, const WriteMembers& writeMembers) {
    beginList(key);
    for (const auto& item : items) {
      beginElement();
      writeMembers(item);
      endElement();
    }
    endList();
  }

 private:
  void beginList(std::string_view key);
  void beginElement();
  void endElement();
  void endList();

  class Text;
  std::ostream& out_;
  std::unique_ptr<Text> text_;
};

}  // namespace vfpass::report
