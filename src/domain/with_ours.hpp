#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "vfpass/domain/domain_xml.hpp"

namespace vfpass::domain {

/// A domain XML that carries nothing of ours, with one root port, one device and one metadata entry
/// for each of the leases, which are not empty; the metadata are sealed.
std::string withOurs(std::string_view xml, const std::vector<Lease>& leases,
                     const Templates& templates, const SealKey& key);

}  // namespace vfpass::domain
