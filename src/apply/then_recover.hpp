#pragma once

#include <string>

namespace vfpass::apply {

/// The remedy against the cause of an interruption, followed by `vfpass recover` unless it ends
/// with that already.
inline std::string thenRecover(const std::string& remedy) {
  const std::string recover = "run `vfpass recover`";
  if (remedy.empty()) {
    return recover;
  }
  return remedy.ends_with(recover) ? remedy : remedy + ", then " + recover;
}

}  // namespace vfpass::apply
