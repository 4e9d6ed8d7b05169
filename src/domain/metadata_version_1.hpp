#pragma once

#include <pugixml.hpp>
#include <string>

#include "vfpass/model/record.hpp"

namespace vfpass::domain {

/// Our metadata element as vfpass 0.1 wrote it before version 2: a lease in attributes of
/// `<vfpass:lease>` and of its children. Only read; the next change of the domain writes version 2.

/// The lease as model::decodeTerms() reads it. Throws Error (ExitCode::badInput) for attributes
/// that cannot be converted; those that are missing are missing in the result.
model::Json leaseOfVersion1(pugi::xml_node lease);

/// A `<vfpass:setting>` of a lease, as model::decodeEdit() reads it. Throws as above.
model::Json editOfVersion1(pugi::xml_node setting);

/// What the seal of the element covers, independent of formatting and of the order of leases.
std::string sealedTextOfVersion1(pugi::xml_node metadata);

}  // namespace vfpass::domain
