#pragma once

#include <string>
#include <vector>

namespace vfpass::probe {

/// A shared library that was opened while running, so that a guest without it gets a finding and
/// the program still starts.
class Library {
 public:
  /// Opens the first of these names that can be opened. Throws Error with the loader's words.
  Library(const std::vector<std::string>& names, const std::string& remedy);
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;
  ~Library();

  /// Sets `function` to what the library calls `name`. Throws Error when it has no such thing.
  template <typename Function>
  void require(Function*& function, const char* name) const {
    function = reinterpret_cast<Function*>(address(name, true));
  }
  /// The same, but nullptr when the library is too old for it.
  template <typename Function>
  void find(Function*& function, const char* name) const {
    function = reinterpret_cast<Function*>(address(name, false));
  }

 private:
  [[nodiscard]] void* address(const char* name, bool required) const;

  void* handle_ = nullptr;
  std::string name_;
};

}  // namespace vfpass::probe
