#pragma once

#include <map>
#include <pugixml.hpp>
#include <string>
#include <vector>

#include "device_xml.hpp"
#include "document.hpp"
#include "vfpass/domain_edit.hpp"
#include "xml_source.hpp"

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

/// Inserts `lines`, each with its line break before it, at the end of a container element.
Splice insertInto(const Document& document, pugi::xml_node container, const std::string& lines);

/// Keyed by offset, so that an element named by two records is removed once.
using Removals = std::map<std::size_t, Splice>;

/// Removes elements of a container, and the container itself as far as only they needed it.
std::vector<Splice> removeFrom(const Document& document, pugi::xml_node container,
                               Container original, const Removals& removals);

/// State of each container in a domain XML without edits.
std::map<EditPlace, Container> containersOf(const Document& document);

/// Inserts the edits into a domain XML that has none. Throws Error (ExitCode::badInput) if a
/// container is missing that is never created (`<cpu>`, the pcie-root controller).
std::vector<Splice> insertEdits(const Document& document, const std::vector<DomainEdit>& edits);

/// Removes the elements that our metadata records, where they are unchanged. If somebody has
/// changed any element of a setting, all elements of that setting stay: they belong to that person
/// now.
std::vector<Splice> removeEdits(const Document& document);

/// The XML of an arriving guest with these edits in place of those that its metadata records, where
/// the guest does not notice them (isHostSide()). Edits that the metadata records but the XML lacks
/// are for the next start, and stay out of it. Sets the state of each container that it changes.
std::string withHostEdits(std::string_view xml, const std::vector<DomainEdit>& edits,
                          std::map<EditPlace, Container>& containers);

/// True if the XML has all of these edits unchanged.
bool carriesEdits(const Document& document, const std::vector<DomainEdit>& edits);

}  // namespace vfpass::domain
