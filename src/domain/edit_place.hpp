#pragma once

#include <pugixml.hpp>
#include <string>

#include "document.hpp"
#include "vfpass/domain_edit.hpp"

namespace vfpass::domain {

/// The element of a place; a null node when the domain has none.
pugi::xml_node containerAt(const Document& document, EditPlace place);

/// The element after which a place's own element is put where the domain has none: libvirt takes
/// them in any order. Throws Error (ExitCode::badInput) for places that are never made.
pugi::xml_node neighbourOf(const Document& document, EditPlace place);

/// A start tag for the place's own element. QEMU's elements bring their namespace along, so that
/// they leave nothing behind; libvirt moves it to the root, and drops it there when they are gone.
std::string startTagOf(const Document& document, EditPlace place);

}  // namespace vfpass::domain
