#pragma once

#include <memory>
#include <string>

#include "located_tree.hpp"
#include "problem_list.hpp"

namespace vfpass::config {

/// A JSON schema ready for use. Holds the shipped text, nothing of its own.
class SchemaValidator {
 public:
  /// Throws std::exception when the text is no schema (a mistake of the build).
  explicit SchemaValidator(const std::string& schemaText);
  SchemaValidator(const SchemaValidator&) = delete;
  SchemaValidator& operator=(const SchemaValidator&) = delete;
  ~SchemaValidator();

  /// Reports everything in the tree that the schema does not accept, with its place, in words taken
  /// from the schema's titles; the values concerned become `refused`.
  void validate(Node& root, ProblemList& problems) const;

 private:
  struct Implementation;
  std::unique_ptr<Implementation> implementation_;
};

}  // namespace vfpass::config
