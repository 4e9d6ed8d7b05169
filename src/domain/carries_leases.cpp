#include <algorithm>

#include "domain_edits.hpp"
#include "vfpass/domain/domain_xml.hpp"
#include "vfpass/domain/seal.hpp"

namespace vfpass::domain {
namespace {

// Sorted, so that the order of leases does not matter.
std::vector<Lease> comparable(const std::vector<Lease>& leases) {
  std::vector<Lease> result;
  for (const auto& lease : leases) {
    result.push_back(termsOf(lease));
  }
  std::sort(result.begin(), result.end());
  return result;
}

}  // namespace

bool carriesLeases(std::string_view xml, const std::vector<Lease>& leases, const SealKey& key) {
  const auto parsed = parseDomain(xml);
  return parsed.managed == !leases.empty() && sealFault(parsed, key).empty() &&
         comparable(parsed.leases) == comparable(leases) &&
         elementDifferences(xml, leases).empty() && carriesEdits(Document(xml), editsOf(leases));
}

}  // namespace vfpass::domain
