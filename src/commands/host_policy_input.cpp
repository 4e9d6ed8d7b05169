#include "host_policy_input.hpp"

#include <algorithm>

#include "attach_input.hpp"
#include "vfpass/base/default_deadlines.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/plan/owner_objections.hpp"
#include "vfpass/plan/select_pf.hpp"
#include "vfpass/state/memory_checks.hpp"

namespace vfpass::commands {
namespace {

// The running kernel's links do not belong to a captured tree.
bool isLive(const Session& session) { return session.options().sysroot == "/"; }

std::string yamlText(bool value) { return value ? "true" : "false"; }

template <typename Value, typename Text>
std::optional<std::string> textOf(const std::optional<Value>& value, Text text) {
  return value ? std::optional<std::string>(text(*value)) : std::nullopt;
}

std::string numberText(unsigned number) { return std::to_string(number); }

std::vector<PciAddress> vfsOf(const PhysicalFunction& pf) {
  std::vector<PciAddress> addresses;
  std::ranges::transform(pf.vfs, std::back_inserter(addresses), &VirtualFunction::address);
  return addresses;
}

}  // namespace

std::string withRemedy(const plan::Objection& objection) {
  return withRemedy(Error(objection.message, objection.remedy));
}

RemovedVfUsers DefinedUsers::ofRemoved(const PhysicalFunction& pf, const PfPolicy& policy) {
  if (policy.vfCount.value_or(pf.vfs.size()) >= pf.vfs.size()) {
    return {};
  }
  if (!survey_) {
    try {
      session_.limitLibvirt(deadlines::libvirtAnswer);
      survey_ = surveyDomains(session_);
    } catch (const Error& error) {
      session_.warn("cannot check whether domains name VFs that are removed: " + withRemedy(error));
      survey_.emplace();
    }
  }
  return {plan::definedUsers(pf, survey_->summaries, survey_->pools, session_.readLeases()),
          survey_->unknown};
}

plan::HostInput hostInput(Session& session, const PhysicalFunction& pf, const PfPolicy& policy,
                          RemovedVfUsers users) {
  plan::HostInput input;
  input.pf = pf;
  if (pf.driver == "mlx5_core" && !pf.vfs.empty()) {
    noteMigratable(input.pf, session.kernel().migratableVfs(pf.address));
  }
  input.settings = session.kernel().readPfSettings(pf.address);
  input.observable = isLive(session);
  input.policy = policy;
  input.leases = session.readLeases();
  input.users = std::move(users.known);
  input.unknownUsers = std::move(users.unknown);
  if (!pf.vfs.empty()) {
    input.holders = session.kernel().findHolders(vfsOf(pf));
  }
  input.quarantined = session.quarantined();
  input.openWork = session.openWork();
  return input;
}

void objectToSpace(Session& session, plan::HostDecision& decision) {
  auto objections = checkVfSpace(session, decision.plan);
  if (!objections.empty()) {
    decision.plan.steps.clear();
    std::ranges::move(objections, std::back_inserter(decision.objections));
  }
}

plan::SoftRoceInput softRoceInput(Session& session) {
  plan::SoftRoceInput input;
  input.policy = session.configuration().softRoce;
  input.found = session.kernel().readRdmaLinks();
  // This host's records do not apply to a captured tree, which is another host.
  if (!isLive(session)) {
    return input;
  }
  input.records = session.softRoceRecords();
  input.bootId = session.kernel().bootId();
  for (const auto& wanted : input.policy) {
    input.netdevFaults[wanted.netdev] = session.kernel().softRoceFault(wanted.netdev);
    if (session.root().exists("sys/class/net/" + wanted.netdev + "/device/infiniband")) {
      input.hardwareNetdevs.insert(wanted.netdev);
    }
  }
  for (const auto& decision :
       plan::decideSoftRoce(input.policy, input.found, input.records, input.bootId)) {
    if (decision.remove) {
      input.users[decision.name] = session.kernel().rdmaUsers(decision.found->number.value());
    }
  }
  return input;
}

report::HostEntry describePf(const PhysicalFunction& pf, const PfSettings& settings,
                             const PfPolicy* policy) {
  const PfPolicy wanted = policy == nullptr ? PfPolicy{} : *policy;
  const auto& link = settings.link;
  report::HostEntry entry;
  entry.name = toString(pf.address);
  entry.netdev = pf.netdev();
  entry.listed = policy != nullptr;
  entry.settings.push_back({"virtual-function-count", textOf(wanted.vfCount, numberText),
                            std::to_string(pf.vfs.size())});
  entry.settings.push_back(
      {"embedded-switch-mode", wanted.eswitchMode,
       textOf(settings.eswitchMode, [](EswitchMode mode) { return std::string(toString(mode)); })});
  entry.settings.push_back(
      {"mtu", textOf(wanted.mtu, numberText),
       textOf(link, [](const LinkSettings& value) { return numberText(value.mtu); })});
  entry.settings.push_back(
      {"up", textOf(wanted.up, yamlText),
       textOf(link, [](const LinkSettings& value) { return yamlText(value.up); })});
  return entry;
}

const PhysicalFunction& pfOf(const PfPolicy& policy, const HostPolicy& all,
                             const Inventory& inventory) {
  const std::string subject = toString(policy.place) + ": PF " + printable(toString(policy.pf));
  const auto matching = plan::matchingPfs(policy.pf, inventory);
  if (matching.size() > 1) {
    const auto several = plan::severalPfs(policy.pf, matching, toString(policy.place));
    throw Error(several.message, several.remedy, several.code);
  }
  if (matching.empty()) {
    throw Error(subject + " is not on this host", "run `vfpass pf list` to list the PFs",
                ExitCode::badInput);
  }
  const PhysicalFunction& pf = *matching.front();
  const PfPolicy* first = plan::policyOf(pf, all);
  if (first != &policy) {
    throw Error(subject + " already has an entry at " + toString(first->place),
                "merge the two entries", ExitCode::badInput);
  }
  return pf;
}

report::HostEntry failedEntry(const PfPolicy& policy, const Error& error) {
  report::HostEntry entry;
  entry.name = toString(policy.pf);
  entry.listed = true;
  entry.failures.push_back(withRemedy(error));
  return entry;
}

std::vector<report::SoftRoceEntry> describeLinks(
    const std::vector<plan::SoftRoceDecision>& decisions) {
  std::vector<report::SoftRoceEntry> entries;
  for (const auto& decision : decisions) {
    report::SoftRoceEntry entry;
    entry.name = decision.name;
    if (decision.wanted) {
      entry.wanted = decision.wanted->netdev;
    }
    if (decision.found && decision.found->softRoce) {
      entry.found = decision.found->netdev;
    }
    entry.madeByVfpass = decision.ours;
    if (decision.objection) {
      entry.failures.push_back(withRemedy(*decision.objection));
    }
    if (decision.wanted || decision.found) {
      entries.push_back(std::move(entry));
    }
  }
  return entries;
}

std::optional<report::MemoryCheckEntry> describeMemoryCheck(Session& session) {
  if (!session.root().isLive()) {
    return std::nullopt;
  }
  report::MemoryCheckEntry entry{session.configuration().host.gpuMemoryCheck, std::nullopt};
  if (const auto applied = state::observedMemoryChecks(session.options().runDirectory)) {
    entry.found = *applied == MemoryChecks::on;
  }
  return entry;
}

void reportFailures(Session& session, const report::HostReport& report) {
  const auto reportThose = [&session](const auto& entries) {
    for (const auto& entry : entries) {
      for (const auto& failure : entry.failures) {
        session.warn(failure);
      }
    }
  };
  reportThose(report.pfs);
  reportThose(report.softRoce);
}

const HostPolicy& soundPolicy(Session& session) {
  const auto& configuration = session.configuration();
  std::vector<config::Problem> ours;
  std::vector<std::string> lines;
  for (const auto& problem : configuration.problems) {
    if (std::filesystem::path(problem.place.file).filename() == "host.yaml") {
      ours.push_back(problem);
      lines.push_back(toString(problem));
    }
  }
  if (!ours.empty()) {
    throw Error(join(lines, "\n        "), mistakesOf(ours), "correct host.yaml");
  }
  return configuration.host;
}

}  // namespace vfpass::commands
