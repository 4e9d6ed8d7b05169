#pragma once

#include <pugixml.hpp>
#include <string>
#include <vector>

#include "vfpass/lease.hpp"

namespace vfpass::domain {

/// Version of the element. Other versions are refused: a lease must not be partly understood.
inline constexpr const char* metadataVersion = "1";

/// Appends an unsealed `<vfpass:domain>` with one `<vfpass:lease>` per lease to `parent` and
/// returns it.
pugi::xml_node writeMetadata(pugi::xml_node parent, const Uuid& domain,
                             const std::vector<Lease>& leases);

/// The attribute that holds sealOf() the leases.
inline constexpr const char* sealAttribute = "seal";

/// UUID of the domain that the element was written for; in a copied XML it differs from the
/// domain's own.
Uuid readMetadataOwner(pugi::xml_node metadata);

/// The leases of the element; state and bootId have their defaults. Throws Error
/// (ExitCode::badInput) for an unknown version and for missing or invalid attributes.
std::vector<Lease> readMetadata(pugi::xml_node metadata, const std::string& domainName);

}  // namespace vfpass::domain
