#pragma once

#include <string>
#include <vector>

#include "vfpass/domain/domain_xml.hpp"
#include "vfpass/seal_key.hpp"

namespace vfpass::domain {

/// The seal of a metadata element that holds these leases, all of one domain: HMAC-SHA256 over the
/// host's id and everything that the element says, whatever its formatting and order; 64
/// hexadecimal digits. Empty without a secret.
std::string sealOf(const std::vector<Lease>& leases, const SealKey& key);

/// True when the domain's metadata were written by this host for this domain and nobody has changed
/// them since. Only such metadata may be acted on.
bool isSealed(const ParsedDomain& parsed, const SealKey& key);

/// Why the metadata are not acted on: unreadable, written for another domain, without a seal, or
/// with a seal that is not this host's for these leases. Empty when they are sealed, and for a
/// domain without metadata.
std::string sealFault(const ParsedDomain& parsed, const SealKey& key);

}  // namespace vfpass::domain
