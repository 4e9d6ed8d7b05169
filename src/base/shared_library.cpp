#include "vfpass/base/shared_library.hpp"

#include <dlfcn.h>

#include "vfpass/base/text.hpp"
#include "vfpass/error.hpp"

namespace vfpass {

SharedLibrary::SharedLibrary(const std::vector<std::string>& names, const std::string& remedy,
                             Binding binding) {
  const int when = binding == Binding::lazy ? RTLD_LAZY : RTLD_NOW;
  std::vector<std::string> reasons;
  for (const std::string& name : names) {
    handle_ = ::dlopen(name.c_str(), when | RTLD_LOCAL);
    if (handle_ != nullptr) {
      name_ = name;
      return;
    }
    const char* reason = ::dlerror();
    reasons.emplace_back(reason == nullptr ? name : printable(reason));
  }
  throw Error("cannot load " + join(names, " or ") + ": " + join(reasons, "; "), remedy);
}

SharedLibrary::~SharedLibrary() { ::dlclose(handle_); }

void* SharedLibrary::address(const char* name, bool required) const {
  void* found = ::dlsym(handle_, name);
  if (found == nullptr && required) {
    throw Error(name_ + " has no function " + name, "install a newer version");
  }
  return found;
}

}  // namespace vfpass
