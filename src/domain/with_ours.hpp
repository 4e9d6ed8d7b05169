#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "vfpass/domain/domain_xml.hpp"

namespace vfpass::domain {

/// Adds one root port, one device and one metadata entry per lease to a domain XML without elements
/// of ours, and seals the metadata. `leases` is not empty.
std::string withOurs(std::string_view xml, const std::vector<Lease>& leases,
                     const Templates& templates, const SealKey& key);

}  // namespace vfpass::domain
