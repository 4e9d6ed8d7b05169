#pragma once

#include <string>
#include <vector>

namespace vfpass::probe {

/// A shared library that is loaded at run time, so that the program also starts in a guest without
/// it and reports a finding.
class Library {
 public:
  /// Loads the first of these libraries that can be loaded. Throws Error with the loader's
  /// messages.
  Library(const std::vector<std::string>& names, const std::string& remedy);
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;
  ~Library();

  /// Sets `function` to the symbol `name`. Throws Error if the library lacks it.
  template <typename Function>
  void require(Function*& function, const char* name) const {
    function = reinterpret_cast<Function*>(address(name, true));
  }
  /// The same, but sets nullptr if the library lacks it.
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
