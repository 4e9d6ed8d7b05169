#pragma once

#include <string>

#include "vfpass/error.hpp"

namespace vfpass::domain {

/// The error for a text that is not a domain XML, or one that nobody should trust.
inline Error badXml(const std::string& reason) {
  return Error("the domain XML cannot be used: " + reason,
               "look at it with `virsh dumpxml` and mend it with `virsh edit`", ExitCode::badInput);
}

/// The error for a metadata element of ours that does not say what it must. parseDomain() makes it
/// the domain's `metadataProblem`.
inline Error badMetadata(const std::string& reason) {
  return Error(reason, {}, ExitCode::badInput);
}

}  // namespace vfpass::domain
