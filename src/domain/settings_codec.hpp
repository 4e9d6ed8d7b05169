#pragma once

#include <pugixml.hpp>
#include <vector>

#include "vfpass/domain_edit.hpp"
#include "vfpass/vf_settings.hpp"

namespace vfpass::domain {

/// Writes the members that are set as attributes of `node`, named as in the mapping.
void writeSettings(pugi::xml_node node, const VfSettings& settings);

/// The inverse. Throws Error (ExitCode::badInput) for an invalid value.
VfSettings readSettings(pugi::xml_node node);

/// Of one lease; the domain settings are on one lease of the domain.
inline constexpr std::size_t maxEdits = 64;

/// Fills a `<vfpass:setting>` element.
void writeEdit(pugi::xml_node node, const DomainEdit& edit);

/// The inverse. Throws Error (ExitCode::badInput) for missing or invalid attributes.
DomainEdit readEdit(pugi::xml_node setting);

/// All `<setting>` elements of one `<lease>`.
std::vector<DomainEdit> readEdits(pugi::xml_node lease);

}  // namespace vfpass::domain
