#pragma once

#include <set>
#include <string>
#include <vector>

namespace vfpass {

/// Detects duplicate members of an object during parsing: JSON parsers silently keep one of them,
/// and which one depends on the parser.
class UniqueKeys {
 public:
  void enterObject() { open_.emplace_back(); }
  void leaveObject() { open_.pop_back(); }
  /// False when the innermost object already has this key.
  bool add(const std::string& key) { return open_.empty() || open_.back().insert(key).second; }

 private:
  std::vector<std::set<std::string>> open_;
};

}  // namespace vfpass
