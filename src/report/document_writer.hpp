#pragma once

#include <ostream>
#include <string>

#include "json.hpp"

namespace vfpass::report {

/// Writes a document with long lists, element by element: the same text as writeDocument(), without
/// the whole document in memory. `topo --json` of 4,096 functions needs 11 MiB instead of 39 that
/// way (docs/performance.md).
class DocumentWriter {
 public:
  explicit DocumentWriter(std::ostream& out);
  DocumentWriter(const DocumentWriter&) = delete;
  DocumentWriter& operator=(const DocumentWriter&) = delete;
  /// Ends the document.
  ~DocumentWriter();

  void member(const std::string& key, const Json& value);

  /// A member that is the list of `toJson(item)` for all `items`.
  template <typename Items, typename ToJson>
  void list(const std::string& key, const Items& items, const ToJson& toJson) {
    begin(key);
    bool first = true;
    for (const auto& item : items) {
      out_ << (first ? "[\n    " : ",\n    ");
      write(toJson(item), 4);
      first = false;
    }
    out_ << (first ? "[]" : "\n  ]");
  }

 private:
  void begin(const std::string& key);
  void write(const Json& value, unsigned indent);

  std::ostream& out_;
};

}  // namespace vfpass::report
