#pragma once

#include <pugixml.hpp>

#include "vfpass/vf_settings.hpp"

namespace vfpass::domain {

/// Writes the members that are set as attributes of `node`, named as in the mapping.
void writeSettings(pugi::xml_node node, const VfSettings& settings);

/// The inverse. Throws Error (ExitCode::badInput) for an invalid value.
VfSettings readSettings(pugi::xml_node node);

}  // namespace vfpass::domain
