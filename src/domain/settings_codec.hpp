#pragma once

#include <pugixml.hpp>

#include "vfpass/vf_settings.hpp"

namespace vfpass::domain {

/// Writes the members that are there as attributes of `node`, with the mapping's names.
void writeSettings(pugi::xml_node node, const VfSettings& settings);

/// The inverse. Throws Error (ExitCode::badInput) for a value that cannot be.
VfSettings readSettings(pugi::xml_node node);

}  // namespace vfpass::domain
