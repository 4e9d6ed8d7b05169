#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "vfpass/domain_edit.hpp"
#include "vfpass/domain_facts.hpp"

namespace vfpass::domain {

/// The parts of a domain XML that passed-through devices depend on, without the elements that
/// vfpass added. Invalid amounts and node sets are left out. Throws Error (ExitCode::badInput) if
/// the text is not a domain.
DomainFacts readDomainFacts(std::string_view xml);

/// Returns the XML with these edits added, for display only: they are not recorded in the metadata,
/// so do not define it. Skips edits whose container is missing.
std::string withEdits(std::string_view xml, const std::vector<DomainEdit>& edits);

}  // namespace vfpass::domain
