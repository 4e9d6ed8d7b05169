#pragma once

#include <string>
#include <vector>

namespace vfpass {

/// A shared library that is loaded at run time, so that the program also starts without it, and
/// faster. Until the object is destroyed, its functions can be called.
class SharedLibrary {
 public:
  /// When the loader looks for the functions that the library and those that it needs call: at
  /// once, so that a missing one is an error here, or at the first call of each, which is faster.
  enum class Binding { immediate, lazy };

  /// Loads the first of these libraries that can be loaded. Throws Error with the loader's
  /// messages.
  SharedLibrary(const std::vector<std::string>& names, const std::string& remedy,
                Binding binding = Binding::immediate);
  SharedLibrary(const SharedLibrary&) = delete;
  SharedLibrary& operator=(const SharedLibrary&) = delete;
  ~SharedLibrary();

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

}  // namespace vfpass
