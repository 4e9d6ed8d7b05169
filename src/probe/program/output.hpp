#pragma once

#include <nlohmann/json_fwd.hpp>

namespace vfpass::probe {

/// Writes one document to stdout, with the protocol version, the program's version and its build
/// id.
void writeDocument(nlohmann::json document);

}  // namespace vfpass::probe
