#include "vfpass/plan/plan_soft_roce.hpp"

#include <algorithm>
#include <set>
#include <tuple>

#include "netdev_conflict.hpp"
#include "vfpass/base/shell.hpp"
#include "vfpass/base/text.hpp"

namespace vfpass::plan {
namespace {

template <typename Items>
auto named(const Items& items, const std::string& name) {
  const auto found = std::ranges::find(items, name, &Items::value_type::name);
  return found == items.end() ? std::nullopt : std::optional(*found);
}

// The name of the wanted link is taken by a device that vfpass did not create.
Objection nameTaken(const SoftRocePolicy& wanted, const RdmaLink& found) {
  const std::string name = printable(wanted.name);
  const std::string subject = toString(wanted.place) + ": RDMA device " + name;
  if (!found.softRoce) {
    return {subject + " exists and is not a SoftRoCE link", "choose another name in host.yaml"};
  }
  return {subject + " exists on netdev " + printable(found.netdev) + " instead of " +
              printable(wanted.netdev) + ", and vfpass did not create it",
          "choose another name in host.yaml, or remove it with `rdma link delete " +
              shellArgument(wanted.name) + "`"};
}

Objection netdevTaken(const SoftRocePolicy& wanted, const RdmaLink& other, bool ours) {
  const std::string name = printable(other.name);
  if (ours) {
    return {toString(wanted.place) + ": netdev " + printable(wanted.netdev) +
                " carries SoftRoCE link " + name + ", which is kept; a netdev can carry only one",
            "check why " + name + " is kept"};
  }
  return {toString(wanted.place) + ": netdev " + printable(wanted.netdev) +
              " already carries SoftRoCE link " + name +
              ", which vfpass did not create; a netdev can carry only one",
          "use the name " + name + " in host.yaml, or remove it with `rdma link delete " +
              shellArgument(other.name) + "`"};
}

void decideOne(SoftRoceDecision& decision) {
  const auto& [wanted, found] = std::tie(decision.wanted, decision.found);
  if (!wanted) {
    decision.remove = decision.ours;
  } else if (!found) {
    decision.create = true;
  } else if (found->softRoce && found->netdev == wanted->netdev) {
    return;
  } else if (decision.ours) {
    decision.remove = decision.create = true;
  } else {
    decision.objection = nameTaken(*wanted, *found);
  }
}

}  // namespace

void checkNetdev(SoftRoceDecision& decision, const std::vector<SoftRoceDecision>& all) {
  for (const auto& other : all) {
    const bool stays = other.found && other.found->softRoce && !other.remove;
    if (decision.create && stays && other.found->netdev == decision.wanted->netdev) {
      decision.objection = netdevTaken(*decision.wanted, *other.found, other.ours);
      decision.create = decision.remove = false;
      return;
    }
  }
}

bool isTheOneMade(const RdmaLink& found, const SoftRoceRecord& record, const std::string& bootId) {
  return found.softRoce && record.name == found.name && record.bootId == bootId &&
         record.netdev == found.netdev && found.number &&
         (!record.number || record.number == found.number);
}

std::vector<SoftRoceDecision> decideSoftRoce(const std::vector<SoftRocePolicy>& policy,
                                             const std::vector<RdmaLink>& found,
                                             const std::vector<SoftRoceRecord>& records,
                                             const std::string& bootId) {
  std::set<std::string> names;
  for (const auto& wanted : policy) {
    names.insert(wanted.name);
  }
  for (const auto& link : found) {
    if (link.softRoce) {
      names.insert(link.name);
    }
  }
  for (const auto& record : records) {
    names.insert(record.name);
  }
  std::vector<SoftRoceDecision> decisions;
  for (const auto& name : names) {
    SoftRoceDecision decision;
    decision.name = name;
    decision.wanted = named(policy, name);
    decision.found = named(found, name);
    const auto record = named(records, name);
    decision.ours = record && decision.found && isTheOneMade(*decision.found, *record, bootId);
    decision.forget = record && !decision.ours;
    decideOne(decision);
    decisions.push_back(std::move(decision));
  }
  for (auto& decision : decisions) {
    checkNetdev(decision, decisions);
  }
  return decisions;
}

}  // namespace vfpass::plan
