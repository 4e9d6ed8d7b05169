#pragma once

#include <pugixml.hpp>
#include <string>
#include <vector>

#include "vfpass/lease.hpp"

namespace vfpass::domain {

/// Version of the element; another one is refused, because a lease must not be half understood.
inline constexpr const char* metadataVersion = "1";

/// Appends `<vfpass:domain>`, not sealed yet, with one `<vfpass:lease>` per lease to `parent` and
/// returns it.
pugi::xml_node writeMetadata(pugi::xml_node parent, const Uuid& domain,
                             const std::vector<Lease>& leases);

/// Attribute of the element that carries sealOf() its leases.
inline constexpr const char* sealAttribute = "seal";

/// UUID of the domain that the element was written for; a copied XML carries a foreign one.
Uuid readMetadataOwner(pugi::xml_node metadata);

/// The leases in the element; state and bootId have their defaults. Throws Error
/// (ExitCode::badInput) for an unknown version and for what is missing or cannot be.
std::vector<Lease> readMetadata(pugi::xml_node metadata, const std::string& domainName);

}  // namespace vfpass::domain
