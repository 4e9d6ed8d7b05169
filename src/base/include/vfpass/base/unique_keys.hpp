#pragma once

#include <set>
#include <string>
#include <vector>

namespace vfpass {

/// Finds members that an object has twice, while a parser goes through a document: JSON parsers
/// keep one of them without a word, and which one differs from parser to parser.
class UniqueKeys {
 public:
  void enterObject() { open_.emplace_back(); }
  void leaveObject() { open_.pop_back(); }
  /// False when the innermost object has had it before.
  bool add(const std::string& key) { return open_.empty() || open_.back().insert(key).second; }

 private:
  std::vector<std::set<std::string>> open_;
};

}  // namespace vfpass
