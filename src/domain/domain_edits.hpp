#pragma once

#include <map>
#include <vector>

#include "document.hpp"
#include "fragments.hpp"
#include "splice.hpp"
#include "vfpass/domain_edit.hpp"

namespace vfpass::domain {

/// What each place is in a domain XML that carries no edits.
std::map<EditPlace, Container> containersOf(const Document& document);

/// Puts the edits into a domain XML that carries none. Throws Error (ExitCode::badInput) when the
/// XML has no element of a place that is never made (`<cpu>`, the pcie-root controller).
std::vector<Splice> insertEdits(const Document& document, const std::vector<DomainEdit>& edits);

/// Takes out what our metadata record, where it stands as recorded. Elements of a setting that
/// somebody has changed stay, all of them: they are somebody else's by now.
std::vector<Splice> removeEdits(const Document& document);

/// True when the XML has every one of these edits as it was made.
bool carriesEdits(const Document& document, const std::vector<DomainEdit>& edits);

}  // namespace vfpass::domain
