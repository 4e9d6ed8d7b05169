#include "interrupted.hpp"

#include "vfpass/apply/recover.hpp"
#include "vfpass/state/locks.hpp"

namespace vfpass::cli {

void settleInterruptedWork(Session& session, const DomainSurvey& survey) {
  apply::Tools tools = session.tools();
  for (const auto& line : apply::recover(tools)) {
    session.note(line);
  }
  const auto adopted =
      apply::adoptLeases(tools.database, survey.managed, survey.active, tools.kernel.bootId());
  for (const auto& line : adopted) {
    session.note(line);
  }
}

state::FileLock lockDomain(Session& session, const Uuid& domain) {
  const auto file = session.options().runDirectory / ("domain-" + toString(domain) + ".lock");
  return state::FileLock::acquire(file, session.tools().lockPatience);
}

}  // namespace vfpass::cli
