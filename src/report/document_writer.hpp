#pragma once

#include <cstdint>
#include <memory>
#include <ostream>
#include <string_view>

#include "json.hpp"

namespace vfpass::report {

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
