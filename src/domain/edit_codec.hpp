#pragma once

#include <pugixml.hpp>
#include <vector>

#include "vfpass/domain_edit.hpp"

namespace vfpass::domain {

/// Of one lease; the domain settings are on one lease of the domain.
inline constexpr std::size_t maxEdits = 64;

/// Fills a `<vfpass:setting>` element.
void writeEdit(pugi::xml_node node, const DomainEdit& edit);

/// The inverse. Throws Error (ExitCode::badInput) for missing or invalid attributes.
DomainEdit readEdit(pugi::xml_node setting);

/// All `<setting>` elements of one `<lease>`.
std::vector<DomainEdit> readEdits(pugi::xml_node lease);

}  // namespace vfpass::domain
