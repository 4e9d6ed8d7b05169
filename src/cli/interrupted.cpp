#include "interrupted.hpp"

#include "vfpass/apply/adopt_leases.hpp"
#include "vfpass/apply/recover.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/state/locks.hpp"

namespace vfpass::cli {

void settleInterruptedWork(Session& session, const DomainSurvey& survey,
                           const std::optional<Uuid>& domain) {
  apply::Tools tools = session.tools();
  const auto recovered = apply::recover(tools);
  for (const auto& line : recovered.ended) {
    session.note(line);
  }
  const auto adoption = apply::adoptLeases(tools.database, tools.kernel, tools.sealKey,
                                           survey.managed, survey.active);
  for (const auto& line : adoption.adopted) {
    session.note(line);
  }
  for (const auto& refused : adoption.refused) {  // `vfpass status` tells everybody
    session.verbose("domain " + printable(refused.domainName) + ": " + refused.reason);
  }
  std::vector<apply::UnendedWork> own;
  for (const auto& work : recovered.unended) {
    if (!domain || work.domain == *domain) {
      own.push_back(work);
    } else {
      session.warn("interrupted work is still open: " + work.line);
    }
  }
  apply::throwUnended(own);
}

state::FileLock lockDomain(Session& session, const Uuid& domain) {
  const auto file = session.options().runDirectory / ("domain-" + toString(domain) + ".lock");
  return state::FileLock::acquire(file, session.tools().lockPatience);
}

}  // namespace vfpass::cli
