#pragma once

#include <string>

#include "vfpass/error.hpp"

namespace vfpass::domain {

/// The error for a text that is not a domain XML or cannot be trusted.
inline Error badXml(const std::string& reason) {
  return Error("invalid domain XML: " + reason,
               "inspect it with `virsh dumpxml` and correct it with `virsh edit`",
               ExitCode::badInput);
}

/// The error for invalid content of our metadata element. parseDomain() turns it into the domain's
/// `metadataProblem`.
inline Error badMetadata(const std::string& reason) {
  return Error(reason, {}, ExitCode::badInput);
}

}  // namespace vfpass::domain
