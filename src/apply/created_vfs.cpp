#include "created_vfs.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "perform.hpp"
#include "recover_operation.hpp"
#include "vfpass/plan/check_device.hpp"
#include "vfpass/plan/plan_detach.hpp"

namespace vfpass::apply {
namespace {

bool drops(const Action& action, const Lease& lease) {
  const auto* drop = std::get_if<DropLease>(&action);
  return drop != nullptr && drop->domain == lease.domain && drop->entry == lease.entry &&
         drop->generation == lease.generation;
}

bool endsForward(const Step& step, const Lease& lease) { return drops(step.action, lease); }

bool endsInRollback(const Step& step, const Lease& lease) {
  return std::ranges::any_of(step.undo, [&](const Action& action) { return drops(action, lease); });
}

bool records(const Action& action, const PciAddress& pf) {
  const auto* record = std::get_if<RecordLease>(&action);
  return record != nullptr && record->lease.pf == pf;
}

bool recordsForward(const Step& step, const PciAddress& pf) { return records(step.action, pf); }

bool recordsInRollback(const Step& step, const PciAddress& pf) {
  return std::ranges::any_of(step.undo, [&](const Action& action) { return records(action, pf); });
}

/// What the plan does to leases, when it runs or when it is rolled back.
struct Direction {
  bool (*ends)(const Step&, const Lease&);
  bool (*records)(const Step&, const PciAddress&);
};

constexpr Direction inOrder{endsForward, recordsForward};
constexpr Direction rollback{endsInRollback, recordsInRollback};

bool removesVfs(const Plan& plan, const PciAddress& pf) {
  return std::ranges::any_of(plan.steps, [&](const Step& step) {
    const auto* removal = std::get_if<RemoveVfs>(&step.action);
    return removal != nullptr && removal->pf == pf;
  });
}

// The leases end, and the domain keeps their devices.
bool leavesDevices(const Plan& plan) {
  return std::ranges::any_of(plan.steps, [](const Step& step) {
    const auto* edit = std::get_if<EditDomain>(&step.action);
    return edit != nullptr && !edit->kept.empty();
  });
}

// The leases that the plan ends, by PF, where no other lease remains. A lease that gets another
// name ends and is recorded again.
std::map<PciAddress, std::vector<Lease>> lastLeases(const Plan& plan, const Direction& direction,
                                                    const std::vector<Lease>& leases) {
  std::map<PciAddress, std::vector<Lease>> last;
  std::set<PciAddress> needed;
  for (const Lease& lease : leases) {
    const bool isEnded = std::ranges::any_of(
        plan.steps, [&](const Step& step) { return direction.ends(step, lease); });
    if (isVf(lease) && lease.original.created && isEnded) {
      last[lease.pf].push_back(lease);
    } else {
      needed.insert(lease.pf);
    }
  }
  std::erase_if(last, [&](const auto& each) {
    const bool isRecorded = std::ranges::any_of(
        plan.steps, [&](const Step& step) { return direction.records(step, each.first); });
    return needed.contains(each.first) || isRecorded || removesVfs(plan, each.first);
  });
  return last;
}

// nullopt if it is gone or cannot be read: then its VFs are left alone.
std::optional<PhysicalFunction> findPf(const PciAddress& address, Tools& tools) {
  try {
    return tools.kernel.readPf(address);
  } catch (const Error&) {
    return std::nullopt;
  }
}

// With nothing known of definitions, the VFs stay.
std::vector<Step> removals(const Plan& plan, const Direction& direction,
                           const AskedDefinitions& definitions, Tools& tools,
                           std::vector<std::string>& warnings) {
  std::vector<Step> steps;
  const auto leases = leasesNear(plan, tools);
  for (const auto& [address, ended] : lastLeases(plan, direction, leases)) {
    const auto pf = definitions.known ? findPf(address, tools) : std::nullopt;
    if (!pf) {
      continue;
    }
    std::vector<PciAddress> vfs;
    for (const auto& vf : pf->vfs) {
      vfs.push_back(vf.address);
    }
    const auto holders = tools.kernel.findHolders(vfs);
    const plan::OtherVfUsers others{leases, holders, *definitions.known};
    if (const auto removal = plan::removalOfVfs(*pf, ended, others)) {
      steps.push_back(*removal);
    } else if (const auto note = plan::noteOnKeptVfs(*pf, ended, others); !note.empty()) {
      warnings.push_back(note);
    }
  }
  return steps;
}

// The leases that end with the VFs of their PF, by PF.
std::map<PciAddress, std::vector<Lease>> endedWithTheirVfs(const Plan& plan,
                                                           const std::vector<Lease>& leases) {
  std::map<PciAddress, std::vector<Lease>> ended;
  for (const Lease& lease : leases) {
    if (isVf(lease) && removesVfs(plan, lease.pf) &&
        std::ranges::any_of(plan.steps,
                            [&](const Step& step) { return endsForward(step, lease); })) {
      ended[lease.pf].push_back(lease);
    }
  }
  return ended;
}

bool removesAnyVfs(const Plan& plan) {
  return std::ranges::any_of(
      plan.steps, [](const Step& step) { return std::holds_alternative<RemoveVfs>(step.action); });
}

// Whether others could have ended their leases of the same VFs while no lock was held.
bool mayEndLastLease(const Plan& plan, Tools& tools) {
  const auto leases = leasesNear(plan, tools);
  return std::ranges::any_of(leases, [&](const Lease& lease) {
    return isVf(lease) && lease.original.created && !removesVfs(plan, lease.pf) &&
           std::ranges::any_of(plan.steps, [&](const Step& step) {
             return endsForward(step, lease) || endsInRollback(step, lease);
           });
  });
}

}  // namespace

void requireCreatedVfs(const CreateVfs& created, const Plan& plan, Tools& tools) {
  std::vector<Lease> leases;
  for (const auto& step : plan.steps) {
    const auto* record = std::get_if<RecordLease>(&step.action);
    if (record != nullptr && isVfOf(record->lease, created.pf)) {
      leases.push_back(record->lease);
    }
  }
  std::vector<PciAddress> vfs;
  for (const auto& lease : leases) {
    vfs.push_back(lease.device);
  }
  plan::throwObjections(
      "cannot use the new VFs of PF " + toString(created.pf),
      plan::checkLeasedVfs(tools.kernel.readPf(created.pf), leases, tools.kernel.findHolders(vfs),
                           plan::devicesOf(tools.database.leasesOf(plan.domain))));
}

bool needsDefinitions(const Plan& plan, const Tools& tools) {
  const auto leases = leasesNear(plan, tools);
  return removesAnyVfs(plan) || !lastLeases(plan, inOrder, leases).empty() ||
         !lastLeases(plan, rollback, leases).empty();
}

AskedDefinitions definitionsFor(const Plan& plan, Tools& tools,
                                std::vector<std::string>& warnings) {
  const bool mayEndLast = mayEndLastLease(plan, tools);
  if (!tools.readDefinitions || leavesDevices(plan) || !(mayEndLast || removesAnyVfs(plan))) {
    return {};
  }
  try {
    return {tools.readDefinitions(), ""};
  } catch (const Error& error) {
    if (mayEndLast) {
      warnings.push_back("VFs that no lease needs any more stay: cannot list the domains: " +
                         std::string(error.what()));
    }
    return {std::nullopt, error.what()};
  }
}

std::map<PciAddress, std::string> namedVfs(const Plan& plan, const AskedDefinitions& definitions,
                                           Tools& tools) {
  std::map<PciAddress, std::string> named;
  if (!definitions.known && definitions.problem.empty()) {
    return named;
  }
  const auto leases = leasesNear(plan, tools);
  const auto ended = endedWithTheirVfs(plan, leases);
  if (!definitions.known && !ended.empty()) {
    throw Error("PF " + toString(ended.begin()->first) +
                    " keeps its VFs: a domain's definition may name one of them by now, and the "
                    "domains cannot be listed: " +
                    definitions.problem,
                "make sure that `virsh list --all` works", ExitCode::refused);
  }
  const std::vector<Holder> checkedByTheGate;
  for (const auto& [address, own] : ended) {
    const auto pf = findPf(address, tools);
    const std::string note =
        pf ? plan::noteOnKeptVfs(*pf, own, {leases, checkedByTheGate, *definitions.known}) : "";
    if (!note.empty()) {
      named.emplace(address, note);
    }
  }
  return named;
}

void requireUnnamedVfs(const Plan& plan, const AskedDefinitions& definitions, Tools& tools) {
  const auto named = namedVfs(plan, definitions, tools);
  if (!named.empty()) {
    throw Error(
        "libvirt's definitions have changed since the plan was made: " + named.begin()->second,
        "run the command again", ExitCode::refused);
  }
}

std::vector<Step> findUnusedVfs(const Plan& plan, const AskedDefinitions& definitions, Tools& tools,
                                std::vector<std::string>& warnings) {
  return leavesDevices(plan) ? std::vector<Step>{}
                             : removals(plan, inOrder, definitions, tools, warnings);
}

void removeUnusedVfs(const Plan& plan, const AskedDefinitions& definitions, HolderGate& gate,
                     Tools& tools, std::vector<std::string>& warnings) {
  for (const Step& removal : removals(plan, rollback, definitions, tools, warnings)) {
    if (gate.objectionsOfOthersTo({removal.action}).empty()) {
      gate.require({removal.action});
      perform(removal.action, tools, warnings);
    }
  }
}

bool endsLease(const std::vector<Action>& inverse) {
  return std::ranges::any_of(
      inverse, [](const Action& action) { return std::holds_alternative<DropLease>(action); });
}

}  // namespace vfpass::apply
