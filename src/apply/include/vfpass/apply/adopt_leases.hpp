#pragma once

#include <string>
#include <vector>

#include "vfpass/domain/domain_xml.hpp"
#include "vfpass/kernel.hpp"
#include "vfpass/seal_key.hpp"
#include "vfpass/state/database.hpp"

namespace vfpass::apply {

/// A domain whose metadata are not acted on, or a lease in them that is not rebuilt.
struct RefusedMetadata {
  Uuid domain;
  std::string domainName;
  std::string reason;
};

struct Adoption {
  std::vector<std::string> adopted;  ///< one line for each lease
  std::vector<RefusedMetadata> refused;
};

/// Puts the leases that domains carry in their metadata into a database that does not know them (it
/// was lost, or replaced); each domain for itself. A lease is rebuilt only when its metadata are
/// sealed by this host for this domain, its generation has not ended, no other lease holds its
/// device, and the card that it names is still in its place. `domains`: where a domain has two
/// XMLs, the persistent one first.
Adoption adoptLeases(state::Database& database, Kernel& kernel, const SealKey& key,
                     const std::vector<domain::ParsedDomain>& domains,
                     const std::vector<Uuid>& active);

/// What adoptLeases() would refuse now; changes nothing, so that a database opened for reading only
/// will do.
std::vector<RefusedMetadata> refusedMetadata(const state::Database& database, Kernel& kernel,
                                             const SealKey& key,
                                             const std::vector<domain::ParsedDomain>& domains);

}  // namespace vfpass::apply
