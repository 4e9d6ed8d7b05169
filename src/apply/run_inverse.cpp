#include "run_inverse.hpp"

#include <algorithm>
#include <optional>

#include "perform.hpp"
#include "vfpass/base/text.hpp"

namespace vfpass::apply {
namespace {

// Another user of the VFs of this PF; empty if there is none. A write of vfpass itself that is
// still pending in the kernel does not count.
std::string otherUser(const RemoveVfs& removal, const Plan& plan, HolderGate& gate, Tools& tools) {
  const auto objections = gate.objectionsOfOthersTo({removal});
  if (!objections.empty()) {
    return objections.front().message;
  }
  const auto leases = tools.database.leases();
  const auto lease = std::find_if(leases.begin(), leases.end(), [&](const Lease& each) {
    return each.pf == removal.pf && each.domain != plan.domain;
  });
  return lease == leases.end()
             ? ""
             : describeDevice(*lease) + " is leased to domain " + printable(lease->domainName);
}

void rollBackCreation(const RemoveVfs& removal, const Plan& plan, HolderGate& gate, Tools& tools,
                      std::vector<std::string>& warnings) {
  std::string user = otherUser(removal, plan, gate, tools);
  if (user.empty()) {
    gate.require({removal});  // refused while a write is pending, so that the next recovery retries
    try {
      perform(removal, tools, warnings);
      return;
    } catch (const Error& error) {
      if (error.code() != ExitCode::refused) {
        throw;
      }
      user = error.what();
    }
  }
  tools.kernel.setVfProbing(removal.pf, *removal.autoprobe);
  warnings.push_back("kept the new VFs of PF " + toString(removal.pf) + ": " + user);
}

}  // namespace

void rollBackAction(const Action& inverse, const Plan& plan, HolderGate& gate, Tools& tools,
                    std::vector<std::string>& warnings) {
  // Only the inverse of a creation has a previous probing state.
  const auto* removal = std::get_if<RemoveVfs>(&inverse);
  if (removal != nullptr && removal->autoprobe) {
    rollBackCreation(*removal, plan, gate, tools, warnings);
    return;
  }
  gate.require({inverse});
  performInverse(inverse, tools, warnings);
}

}  // namespace vfpass::apply
