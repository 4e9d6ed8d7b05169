#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "vfpass/domain_edit.hpp"
#include "vfpass/domain_facts.hpp"

namespace vfpass::domain {

/// What passed devices depend on, as the domain XML has it without anything of ours. Amounts and
/// sets that make no sense are none. Throws Error (ExitCode::badInput) if the text is not a domain.
DomainFacts readDomainFacts(std::string_view xml);

/// The XML with these edits besides what it has, for showing them: they are not recorded, so do not
/// define it. An edit without a place is left out.
std::string withEdits(std::string_view xml, const std::vector<DomainEdit>& edits);

}  // namespace vfpass::domain
