#pragma once

#include <string>
#include <vector>

#include "vfpass/domain/domain_xml.hpp"
#include "vfpass/kernel.hpp"
#include "vfpass/seal_key.hpp"
#include "vfpass/state/database.hpp"

namespace vfpass::apply {

/// A domain whose metadata is not acted on, or a lease in it that is not rebuilt.
struct RefusedMetadata {
  Uuid domain;
  std::string domainName;
  std::string reason;
  /// The device could not be read, for a reason that may pass: a process could not be started, or a
  /// driver does not answer.
  bool unread = false;
};

struct Adoption {
  std::vector<std::string> adopted;  ///< one line per lease
  std::vector<RefusedMetadata> refused;
};

/// Records leases that domains carry in their metadata but the database does not know (because it
/// was lost or replaced), separately for each domain. A lease is rebuilt only if this host sealed
/// the metadata for this domain, its generation has not ended, no other lease holds its device, and
/// its card is still in place. `domains`: the persistent XML of a domain precedes its live XML.
Adoption adoptLeases(state::Database& database, Kernel& kernel, const SealKey& key,
                     const std::vector<domain::ParsedDomain>& domains,
                     const std::vector<Uuid>& active);

/// What adoptLeases() would refuse now. Changes nothing, so a read-only database is enough.
std::vector<RefusedMetadata> refusedMetadata(const state::Database& database, Kernel& kernel,
                                             const SealKey& key,
                                             const std::vector<domain::ParsedDomain>& domains);

}  // namespace vfpass::apply
