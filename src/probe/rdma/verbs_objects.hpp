#pragma once

#include <cerrno>
#include <memory>
#include <string>

#include "rdma/verbs_library.hpp"

namespace vfpass::probe {

/// A verbs object, destroyed by the library's own function. It must not outlive the library or the
/// objects it was created from.
template <typename Object>
using VerbsPointer = std::unique_ptr<Object, int (*)(Object*)>;

using VerbsContext = VerbsPointer<ibv_context>;

/// Opens the RDMA device of this name. Throws Error that lists the available devices.
VerbsContext openDevice(const VerbsLibrary& library, const std::string& name);

/// Takes ownership of what a verbs function returned; throws Error with errno's text if that is
/// nullptr. `what` names the failed operation and its object.
template <typename Object>
VerbsPointer<Object> takeOver(Object* object, int (*destroy)(Object*), const std::string& what);

/// Throws the Error for a verbs call that failed with this errno value.
[[noreturn]] void throwVerbsError(const std::string& what, int error);

template <typename Object>
VerbsPointer<Object> takeOver(Object* object, int (*destroy)(Object*), const std::string& what) {
  if (object == nullptr) {
    throwVerbsError(what, errno);
  }
  return VerbsPointer<Object>(object, destroy);
}

}  // namespace vfpass::probe
