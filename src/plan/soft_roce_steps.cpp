#include <algorithm>

#include "netdev_conflict.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/plan/plan_soft_roce.hpp"

namespace vfpass::plan {
namespace {

void object(SoftRoceDecision& decision, Objection objection) {
  decision.objection = std::move(objection);
  decision.create = decision.remove = false;
}

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

std::optional<SoftRoceRecord> recordOf(const SoftRoceInput& input, const std::string& name) {
  const auto found = std::ranges::find(input.records, name, &SoftRoceRecord::name);
  return found == input.records.end() ? std::nullopt : std::optional(*found);
}

// Records that no later step replaces.
void addRecords(const SoftRoceInput& input, const SoftRoceDecision& decision,
                std::vector<Step>& steps) {
  const auto record = recordOf(input, decision.name);
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
