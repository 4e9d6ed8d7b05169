#pragma once

#include <pugixml.hpp>
#include <string>

#include "document.hpp"
#include "vfpass/domain_edit.hpp"

namespace vfpass::domain {

/// The container element of a place; a null node if the domain has none.
pugi::xml_node containerAt(const Document& document, EditPlace place);

/// The element after which a missing container is inserted; libvirt accepts any order. Throws Error
/// (ExitCode::badInput) for containers that are never created.
pugi::xml_node neighbourOf(const Document& document, EditPlace place);

/// The start tag of the container. QEMU elements declare their namespace themselves so that
/// removing them leaves nothing behind; libvirt moves the declaration to the root and drops it
/// there once the elements are gone.
std::string startTagOf(const Document& document, EditPlace place);

}  // namespace vfpass::domain
