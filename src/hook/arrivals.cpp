#include "operations.hpp"

#include <algorithm>

#include "vfpass/base/default_deadlines.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/plan/plan_hook.hpp"
#include "vfpass/state/database.hpp"

namespace vfpass::hook {
namespace {

using plan::Arrival;

// What prepare would refuse a moment later, with a remedy that does not change the arriving XML.
void requireReadable(const CalledDomain& parsed, Arrival arrival, const std::string& failure) {
  const std::string remedy = plan::arrivalRemedy(arrival, parsed.name);
  if (!parsed.managed) {
    throw Error(failure + ": it has a device attached by vfpass, but no vfpass metadata", remedy);
  }
  if (!parsed.metadataProblem.empty()) {
    throw Error(
        failure + ": cannot read its vfpass metadata: " + parsed.metadataProblem,
        arrival == Arrival::restore ? remedy : "install the same version of vfpass on both hosts");
  }
  const auto differences = domain::elementDifferences(parsed.xml, parsed.leases);
  if (!differences.empty()) {
    throw Error(
        failure + ": its devices are not those that vfpass attached: " + join(differences, "; "),
        remedy);
  }
}

std::vector<Lease> leasesHere(const Places& places) {
  const auto wait = std::chrono::duration_cast<std::chrono::milliseconds>(
      places.deadline - std::chrono::steady_clock::now());
  return state::Database(places.stateDirectory, state::Database::Open::readOnly,
                         std::min(deadlines::hookDatabase, wait))
      .leases();
}

ArrivalAnswer arrive(Arrival arrival, const CalledDomain& parsed, const Places& places) {
  const std::string failure =
      "domain " + printable(parsed.name) +
      (arrival == Arrival::restore ? " cannot be restored" : " cannot migrate to this host");
  requireReadable(parsed, arrival, failure);
  const auto decision =
      plan::planArrival(arrival, parsed.uuid, parsed.name, parsed.leases, leasesHere(places));
  plan::throwObjections(failure, decision.objections);
  if (decision.leases.empty()) {
    return {};
  }
  return {
      domain::withReplacedLeases(parsed.xml, decision.leases, state::readSealKey(places.sealKey)),
      decision.leases};
}

}  // namespace

ArrivalAnswer restoreSaved(const CalledDomain& parsed, const Places& places) {
  try {
    return arrive(Arrival::restore, parsed, places);
  } catch (const Error& error) {
    return {domain::withRefusal(parsed.xml, error), {}};
  }
}

ArrivalAnswer receive(const CalledDomain& parsed, const Places& places) {
  return arrive(Arrival::migration, parsed, places);
}

}  // namespace vfpass::hook
