#include "vfpass/apply/start_locks.hpp"

#include <algorithm>
#include <optional>

#include "end_operation.hpp"
#include "vfpass/base/text.hpp"

namespace vfpass::apply {
namespace {

// An operation on the domain whose writer lives. Call it under the PF locks: a writer takes its own
// lock while it holds them.
std::optional<state::Operation> livingOperation(const Tools& tools, const Uuid& domain) {
  for (auto& operation : tools.database.openOperations()) {
    if (operation.domain == domain && changesDomain(operation) &&
        !state::FileLock::tryAcquire(state::writerLockFile(tools.runDirectory, operation.id))) {
      return std::move(operation);
    }
  }
  return std::nullopt;
}

void waitFor(const state::Operation& operation, const Tools& tools,
             std::chrono::milliseconds timeout) {
  try {
    state::FileLock::acquire(state::writerLockFile(tools.runDirectory, operation.id), timeout);
  } catch (const Error&) {
    throw Error("an unfinished " + std::string(toString(operation.kind)) + " of domain " +
                    printable(operation.domainName) + " is changing the domain's XML",
                "start the domain again once it has finished", ExitCode::refused);
  }
}

}  // namespace

std::vector<state::FileLock> lockForStart(Tools& tools, const Uuid& domain,
                                          const std::vector<PciAddress>& pfs,
                                          std::chrono::milliseconds timeout) {
  using Clock = std::chrono::steady_clock;
  const auto end = Clock::now() + std::min(timeout, tools.remainingTimeout());
  for (;;) {
    auto locks = state::lockPfs(tools.runDirectory, pfs, tools.remainingTimeout());
    const auto operation = livingOperation(tools, domain);
    if (!operation) {
      return locks;
    }
    locks.clear();
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now());
    waitFor(*operation, tools, std::max(left, std::chrono::milliseconds{0}));
  }
}

}  // namespace vfpass::apply
