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

  /// Schema of a block's key or of a list's entries; `part` is nullptr when there is none.
  [[nodiscard]] SchemaView property(const std::string& key) const;
  [[nodiscard]] SchemaView entries() const;
  /// "expected ..." without the "expected".
  [[nodiscard]] std::string title() const;
};

/// Says that a value is not what its schema wants.
void reportValue(Node& node, const SchemaView& schema, ProblemList& problems);

/// Every key of a block that the schema does not know.
void reportUnknownKeys(Node& node, const SchemaView& schema, ProblemList& problems);

/// Every key that the schema requires and the block lacks.
void reportMissingKeys(Node& node, const SchemaView& schema, ProblemList& problems);

/// Every entry that a list holds twice.
void reportRepeatedEntries(Node& node, ProblemList& problems);

}  // namespace vfpass::config
