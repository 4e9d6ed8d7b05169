#pragma once

#include <map>
#include <vector>

#include "document.hpp"
#include "fragments.hpp"
#include "splice.hpp"
#include "vfpass/domain_edit.hpp"

namespace vfpass::domain {

/// State of each container in a domain XML without edits.
std::map<EditPlace, Container> containersOf(const Document& document);

/// Inserts the edits into a domain XML that has none. Throws Error (ExitCode::badInput) if a
/// container is missing that is never created (`<cpu>`, the pcie-root controller).
std::vector<Splice> insertEdits(const Document& document, const std::vector<DomainEdit>& edits);

/// Removes the elements that our metadata records, where they are unchanged. If somebody has
/// changed any element of a setting, all elements of that setting stay: they belong to that person
/// now.
std::vector<Splice> removeEdits(const Document& document);

/// True if the XML has all of these edits unchanged.
bool carriesEdits(const Document& document, const std::vector<DomainEdit>& edits);

}  // namespace vfpass::domain
