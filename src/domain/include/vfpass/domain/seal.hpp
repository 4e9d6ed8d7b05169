#pragma once

#include <string>
#include <vector>

#include "vfpass/domain/domain_xml.hpp"
#include "vfpass/seal_key.hpp"

namespace vfpass::domain {

/// The seal of a metadata element with these leases, all of one domain: HMAC-SHA256 over the host
/// id and the content of the element, independent of formatting and of the order of leases; 64
/// hexadecimal digits. Empty without a secret.
std::string sealOf(const std::vector<Lease>& leases, const SealKey& key);

/// True if this host wrote the metadata for this domain and nobody has changed it since. Act only
/// on such metadata.
bool isSealed(const ParsedDomain& parsed, const SealKey& key);

/// Why the metadata must not be acted on: unreadable, written for another domain, unsealed, or
/// sealed by another host or for other leases. Empty if the seal is valid or the domain has no
/// metadata.
std::string sealFault(const ParsedDomain& parsed, const SealKey& key);

}  // namespace vfpass::domain
