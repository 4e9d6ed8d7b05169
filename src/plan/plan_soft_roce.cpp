#include "vfpass/plan/plan_soft_roce.hpp"

#include <algorithm>
#include <set>
#include <tuple>
#include <vector>

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

void object(SoftRoceDecision& decision, Objection objection) {
  decision.objection = std::move(objection);
  decision.create = decision.remove = false;
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

// rdma_rxe allows one link per netdev (EEXIST).
void checkNetdev(SoftRoceDecision& decision, const std::vector<SoftRoceDecision>& all) {
  for (const auto& other : all) {
    const bool stays = other.found && other.found->softRoce && !other.remove;
    if (decision.create && stays && other.found->netdev == decision.wanted->netdev) {
      return object(decision, netdevTaken(*decision.wanted, *other.found, other.ours));
    }
  }
}

}  // namespace

bool isTheOneMade(const RdmaLink& found, const SoftRoceRecord& record, const std::string& bootId) {
  return found.softRoce && record.name == found.name && record.bootId == bootId &&
         record.netdev == found.netdev && found.number &&
         (!record.number || record.number == found.number);
}

std::vector<SoftRoceDecision> decideSoftRoce(const std::vector<SoftRocePolicy>& policy,
                                             const std::vector<RdmaLink>& found,
                                             const std::vector<SoftRoceRecord>& records,
                                             const std::string& bootId) {
  // Every link that host.yaml or a record names, or that exists.
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

namespace {

void checkUsers(const SoftRoceInput& input, SoftRoceDecision& decision) {
  const auto users = input.users.find(decision.name);
  if (!decision.remove || users == input.users.end()) {
    return;
  }
  for (auto& objection : objectionsToRemoval(users->second)) {
    objection.message = "SoftRoCE link " + printable(decision.name) + ": " + objection.message;
    object(decision, std::move(objection));
  }
}

// Checked before another link is removed to make room for this one.
void checkFault(const SoftRoceInput& input, SoftRoceDecision& decision) {
  if (!decision.create) {
    return;
  }
  const auto fault = input.netdevFaults.find(decision.wanted->netdev);
  if (fault != input.netdevFaults.end() && !fault->second.empty()) {
    object(decision,
           {toString(decision.wanted->place) + ": " + fault->second,
            "check the netdevs with `ip -details link`; for a netdev that appears late, enable "
            "vfpass-soft-roce.service, which waits for the network",
            ExitCode::badInput});
  }
}

// A link that is kept blocks its netdev for another link, which is then kept, too.
void checkConflicts(std::vector<SoftRoceDecision>& decisions) {
  for (std::size_t round = 0; round < decisions.size(); ++round) {
    for (auto& decision : decisions) {
      checkNetdev(decision, decisions);
    }
  }
}

// Records that no later step replaces.
void addRecords(const SoftRoceInput& input, const SoftRoceDecision& decision,
                std::vector<Step>& steps) {
  const auto record = named(input.records, decision.name);
  if (!record || decision.create || decision.remove) {
    return;
  }
  if (decision.forget) {
    steps.push_back({ForgetSoftRoce{decision.name},
                     {RecordSoftRoce{*record}},
                     "the link that vfpass created no longer exists"});
  } else if (decision.ours && !record->number) {
    steps.push_back({RecordSoftRoce{{decision.name, decision.found->netdev, decision.found->number,
                                     input.bootId}},
                     {RecordSoftRoce{*record}},
                     "its number is not recorded yet"});
  }
}

void addRemoval(const SoftRoceDecision& decision, std::vector<Step>& steps) {
  if (!decision.remove) {
    return;
  }
  const RdmaLink& link = decision.found.value();
  steps.push_back({RemoveSoftRoceLink{link.name, link.netdev, link.number},
                   {AddSoftRoceLink{link.name, link.netdev}},
                   decision.create ? "host.yaml puts it on netdev " + decision.wanted->netdev
                                   : "vfpass created it, and host.yaml does not name it"});
}

void addCreation(const SoftRoceDecision& decision, std::vector<Step>& steps) {
  if (decision.create) {
    const SoftRocePolicy& wanted = decision.wanted.value();
    steps.push_back({AddSoftRoceLink{wanted.name, wanted.netdev},
                     {RemoveSoftRoceLink{wanted.name, wanted.netdev}},
                     "host.yaml names it"});
  }
}

void addNotes(const SoftRoceInput& input, const SoftRoceDecision& decision, Plan& plan) {
  if (decision.create && input.hardwareNetdevs.contains(decision.wanted->netdev)) {
    plan.notes.push_back(toString(decision.wanted->place) + ": netdev " +
                         printable(decision.wanted->netdev) +
                         " has hardware RDMA; SoftRoCE on it is slower");
  }
}

}  // namespace

std::vector<Objection> objectionsToRemoval(const std::vector<std::string>& users) {
  if (users.empty()) {
    return {};
  }
  return {{"cannot remove it while it is in use: " + join(users, ", "),
           "stop those programs, then run `vfpass host apply` again"}};
}

SoftRocePlan planSoftRoce(const SoftRoceInput& input) {
  SoftRocePlan planned;
  planned.plan.kind = PlanKind::host;
  planned.decisions = decideSoftRoce(input.policy, input.found, input.records, input.bootId);
  for (auto& decision : planned.decisions) {
    checkUsers(input, decision);
    checkFault(input, decision);
  }
  checkConflicts(planned.decisions);
  auto& steps = planned.plan.steps;
  for (const auto& decision : planned.decisions) {
    addRecords(input, decision, steps);
  }
  for (const auto& decision : planned.decisions) {
    addRemoval(decision, steps);
  }
  for (const auto& decision : planned.decisions) {
    addCreation(decision, steps);
    addNotes(input, decision, planned.plan);
  }
  return planned;
}

std::string softRoceName(const Action& action) {
  if (const auto* add = std::get_if<AddSoftRoceLink>(&action)) {
    return add->name;
  }
  if (const auto* remove = std::get_if<RemoveSoftRoceLink>(&action)) {
    return remove->name;
  }
  if (const auto* record = std::get_if<RecordSoftRoce>(&action)) {
    return record->record.name;
  }
  const auto* forget = std::get_if<ForgetSoftRoce>(&action);
  return forget == nullptr ? "" : forget->name;
}

}  // namespace vfpass::plan
