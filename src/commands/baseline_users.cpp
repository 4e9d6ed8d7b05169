#include "baseline_users.hpp"

#include <algorithm>

#include "vfpass/base/text.hpp"
#include "vfpass/error.hpp"

namespace vfpass::commands {
namespace {

void addOnce(std::vector<std::string>& lines, const std::string& line) {
  constexpr std::size_t most = 16;
  if (lines.size() < most && std::ranges::find(lines, line) == lines.end()) {
    lines.push_back(line);
  }
}

}  // namespace

std::vector<PciAddress> functionsOfCard(const Topology& host, const PciAddress& pf) {
  std::vector<PciAddress> functions;
  for (const Device& each : host.functions) {
    PciAddress inSlot = each.address;
    inSlot.function = pf.function;
    // VFs can be in the slot as well, and come and go.
    if (inSlot == pf && !each.physicalFunction && each.role == FunctionRole::nic) {
      functions.push_back(each.address);
    }
  }
  return functions;
}

// A netdev that is up is no user: the PF's own one has to be.
void addUsers(const std::function<std::vector<Holder>()>& find, Baseline& baseline) {
  try {
    for (const Holder& holder : find()) {
      const std::string line = toString(holder.device) + ": " + holder.description;
      if (holder.kind == HolderKind::vfio || holder.kind == HolderKind::rdma) {
        addOnce(baseline.users, line);
      } else if (holder.kind == HolderKind::unknown) {
        addOnce(baseline.unseenUsers, line);
      }
    }
  } catch (const Error& error) {
    addOnce(baseline.unseenUsers, printable(error.what()));
  }
}

}  // namespace vfpass::commands
