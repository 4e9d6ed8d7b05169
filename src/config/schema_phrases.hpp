#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "located_tree.hpp"
#include "problem_list.hpp"

namespace vfpass::config {

/// The schema of one value, and the whole schema that its references point into.
struct SchemaView {
  const nlohmann::json* whole = nullptr;
  const nlohmann::json* part = nullptr;

  /// Schema of a block's key or of a list's entries; `part` is nullptr if there is none.
  [[nodiscard]] SchemaView property(const std::string& key) const;
  [[nodiscard]] SchemaView entries() const;
  /// Phrase that completes "expected ...".
  [[nodiscard]] std::string title() const;
};

/// Reports a value that its schema does not accept.
void reportValue(Node& node, const SchemaView& schema, ProblemList& problems);

/// Reports every key of a block that the schema does not define.
void reportUnknownKeys(Node& node, const SchemaView& schema, ProblemList& problems);

/// Reports every required key that the block lacks.
void reportMissingKeys(Node& node, const SchemaView& schema, ProblemList& problems);

/// Reports every entry that occurs more than once in a list.
void reportRepeatedEntries(Node& node, ProblemList& problems);

}  // namespace vfpass::config
