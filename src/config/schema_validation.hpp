#pragma once

#include <memory>
#include <string>
#include <vector>

#include "problem_list.hpp"
#include "yaml_tree.hpp"

namespace vfpass::config {

/// A parsed JSON schema. Only one thread may use it.
class SchemaValidator {
 public:
  /// Throws std::exception if the text is not a schema (a build error).
  explicit SchemaValidator(const std::string& schemaText);
  SchemaValidator(const SchemaValidator&) = delete;
  SchemaValidator& operator=(const SchemaValidator&) = delete;
  ~SchemaValidator();

  /// Reports every value in the tree that the schema does not accept, with its place and a message
  /// made from the schema's titles, and marks it as refused.
  void validate(Node& root, ProblemList& problems) const;

  /// The keys that the part of the schema at this JSON pointer lists; more may match a pattern.
  [[nodiscard]] std::vector<std::string> listedKeys(const std::string& pointer) const;

 private:
  struct Implementation;
  std::unique_ptr<Implementation> implementation_;
};

}  // namespace vfpass::config
