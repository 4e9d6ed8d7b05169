#include "verification.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

#include "guest_devices.hpp"
#include "host_observer.hpp"
#include "pf_baseline.hpp"
#include "rdma_counters.hpp"
#include "subject.hpp"
#include "verification_steps.hpp"
#include "vfpass/base/default_deadlines.hpp"
#include "vfpass/base/own_process.hpp"
#include "vfpass/base/scope_guard.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/domain/read_domain_facts.hpp"
#include "vfpass/host/fabric_manager.hpp"
#include "vfpass/report/verify_report.hpp"
#include "vfpass/state/verification_records.hpp"

namespace vfpass::commands {
namespace {

// Null if the VM has none.
const Mapping* mappingOf(Session& session, const DomainDescription& domain) {
  return config::findMapping(session.configuration(), domain.name, toString(domain.uuid));
}

verify::GpuTest gpuTestOf(bool option, std::optional<bool> mapped) {
  using verify::GpuTest;
  if (option || mapped.value_or(false)) {
    return GpuTest::wanted;
  }
  return mapped ? GpuTest::excluded : GpuTest::automatic;
}

events::Result resultOf(Outcome outcome) {
  return outcome == Outcome::passed   ? events::Result::done
         : outcome == Outcome::failed ? events::Result::failed
                                      : events::Result::unverified;
}

// The verdict, with the first finding that led to it.
events::Ending endingOf(const VerifyReport& report) {
  const Outcome outcome = verdict(report);
  events::Ending ending{resultOf(outcome), "VM " + printable(report.domainName) + ": " +
                                               std::string(toString(outcome))};
  const auto cause = std::ranges::find(report.findings, outcome, &Finding::outcome);
  if (outcome != Outcome::passed && cause != report.findings.end()) {
    ending.message += ": " + cause->key + ": " + printable(cause->seen);
    ending.remedy = cause->remedy;
  }
  return ending;
}

// Never at the cost of the report.
std::vector<verify::BaselineSubject> subjectsOf(Session& session, const DomainDescription& domain,
                                                const std::vector<Lease>& vfs) {
  try {
    return baselineSubjects(session, domain, vfs);
  } catch (const Error& error) {
    session.warn(withRemedy(error));
    return {};
  }
}

void compareWithBaselines(Session& session, const std::vector<verify::BaselineSubject>& subjects,
                          VerifyReport& report) {
  try {
    verify::judgeBaselines(subjects, report);
  } catch (const Error& error) {
    session.warn(withRemedy(error));
  }
}

VerifyReport verifyAlone(Session& session, const DomainDescription& domain,
                         const VerifyRequest& request) {
  auto plan = verifyPlanFor(session, domain, request);
  const auto probe = agent::readProbeFile(request.probe);
  waitForAgent(session, session.hypervisor(), domain, request.wait);
  agent::Agent agent(session.hypervisor(), domain.uuid, domain.name, timeoutOf(request, plan),
                     checkpointOf(session));
  const HostObserver host(session, domain, wantedInGuest(session, domain));
  plan.gpus = host.gpus();
  plan.placement = host.placement();
  plan.links = host.links();
  verify::VerifyWatch watch = watchOf(session);
  watch.host = [&](const Lease& lease) { return host.of(lease); };
  const auto baselines = subjectsOf(session, domain, plan.leases);
  plan.isSlow = [&baselines](const std::string& entry, const std::vector<Figure>& figures) {
    const auto own = std::ranges::find(baselines, entry, &verify::BaselineSubject::entry);
    return own != baselines.end() && verify::isBelowBaseline(*own, figures);
  };
  const RdmaCounters rdma(plan.leases, rdmaReader(session, plan.leases));
  VerifyReport report = verifyGuest(agent, probe, plan, watch);
  rdma.judge(report);
  compareWithBaselines(session, baselines, report);
  verify::PairGuest guest{agent,         domain.name, plan.leases, watch.host,
                          watch.traffic, plan.nvlink, plan.gpus};
  guest.rdma = [&rdma](const Lease& lease) { return rdma.of(lease); };
  addNccl(session, domain, request, {guest}, probe, plan, "", report);
  return report;
}

// Of the VFs that the report is about. Never at the cost of the report.
void judgeSettings(Session& session, const DomainDescription& domain, VerifyReport& report) {
  try {
    const Inventory inventory = session.inventory();
    const std::string bootId = session.kernel().bootId();
    for (const Lease& vf : runningVfs(session, domain)) {
      report.findings.push_back(judgeLeasedSettings(vf, inventory, bootId));
    }
  } catch (const Error& error) {
    session.warn(withRemedy(error));
  }
}

// Never at the cost of the report.
void explainByHostsMapping(Session& session, const DomainDescription& domain,
                           VerifyReport& report) {
  if (verdict(report) != Outcome::failed) {
    return;
  }
  try {
    explainByPeerMapping(
        peerMappingOf(session, domain, leasesOf(session.readLeases(), domain.uuid)), report);
  } catch (const Error& error) {
    session.warn(withRemedy(error));
  }
}

// A run with limits of its own says nothing about the mapping's: it neither replaces the last
// verification nor ends a pending one.
void keepIfStandard(Session& session, const DomainDescription& domain, const VerifyRequest& request,
                    const VerifyReport& report, std::filesystem::file_time_type begin) {
  const auto limits = ownLimits(request, verifyPolicyOf(session, domain));
  if (!limits.empty()) {
    session.note("not kept as the last verification of VM " + printable(domain.name) +
                 ", because of " + join(limits, ", "));
    return;
  }
  keepReport(session, report);
  if (!request.afterStart) {  // otherwise the caller ends what it has begun
    state::removeMarks(session.options().runDirectory, domain.uuid, begin);
  }
}

}  // namespace

std::vector<std::string> ownLimits(const VerifyRequest& request, const VerifyPolicy& policy) {
  if (!request.inject.empty()) {
    return {"--inject"};
  }
  if (request.afterStart) {
    return {};
  }
  const VerifyRequest usual;
  using verify::RelaxedOrdering;
  const std::vector<std::pair<bool, std::string>> options = {
      {request.minimumShare && request.minimumShare != policy.minimumShare, "--minimum-bandwidth"},
      {request.gpu && !policy.gpu.value_or(false), "--gpu"},
      {request.messageBytes != usual.messageBytes, "--bytes"},
      {request.iterations != usual.iterations, "--iterations"},
      {request.sizes, "--sizes"},
      {request.allPairs, "--all-pairs"},
      {request.relaxedOrdering != RelaxedOrdering::automatic, "--relaxed-ordering"},
      {request.timeout && *request.timeout < deadlines::verify, "--timeout"}};
  std::vector<std::string> names;
  for (const auto& [differs, name] : options) {
    if (differs) {
      names.emplace_back(name);
    }
  }
  return names;
}

VerifyPolicy verifyPolicyOf(Session& session, const DomainDescription& domain) {
  const Mapping* mapping = mappingOf(session, domain);
  return mapping == nullptr ? VerifyPolicy{} : mapping->verify;
}

std::optional<NvlinkMode> nvlinkOf(Session& session, const DomainDescription& domain) {
  const Mapping* mapping = mappingOf(session, domain);
  return mapping == nullptr ? std::nullopt : mapping->nvlink;
}

std::string fabricManagerOf(Session& session, const DomainDescription& domain) {
  return nvlinkOf(session, domain) == NvlinkMode::partition
             ? host::readFabricManagerVersion(deadlines::fabricAnswer).value_or("")
             : "";
}

std::map<std::string, verify::WantedInGuest> wantedInGuest(Session& session,
                                                           const DomainDescription& domain) {
  std::map<std::string, verify::WantedInGuest> wanted;
  if (const Mapping* mapping = mappingOf(session, domain); mapping != nullptr) {
    for (const auto& vf : mapping->vfs) {
      wanted[vf.name] = {vf.guest.mtu, mapping->nccl.gidIndex, vf.guest.address.value_or("")};
    }
  }
  return wanted;
}

// Missing counters and errors are treated alike: the host has no measurement.
std::optional<VfTraffic> trafficOf(Session& session, const Lease& lease) {
  try {
    return session.kernel().vfTraffic(lease.pf, vfOf(lease).index);
  } catch (const Error& error) {
    session.warn(withRemedy(error));
    return std::nullopt;
  }
}

verify::VerifyPlan verifyPlanFor(Session& session, const DomainDescription& domain,
                                 const VerifyRequest& request) {
  const VerifyPolicy policy = verifyPolicyOf(session, domain);
  verify::VerifyPlan plan;
  plan.leases = runningVfs(session, domain);
  session.operations().addDevices(plan.leases);
  plan.gpuTest = gpuTestOf(request.gpu, policy.gpu);
  plan.nvlink = nvlinkOf(session, domain);
  plan.fabricManager = fabricManagerOf(session, domain);
  plan.minimumShare = request.minimumShare ? request.minimumShare : policy.minimumShare;
  plan.messageBytes = request.messageBytes;
  plan.iterations = request.iterations;
  plan.allPairs = request.allPairs;
  plan.sustain = request.sustain;
  plan.sizes = request.sizes;
  plan.sizeIterations = request.sizeIterations;
  plan.folder = request.folder;
  plan.probeTimeout = deadlines::probeWithin(request.timeout.value_or(deadlines::verify));
  plan.relaxedOrdering = request.relaxedOrdering;
  plan.tools = request.tools;
  plan.concurrent = request.concurrent;
  plan.vcpus = domain::readDomainFacts(domain.liveXml).onlineVcpus;
  if (!request.inject.empty()) {
    plan.probeArguments = {"--inject", request.inject};
  }
  return plan;
}

std::chrono::seconds timeoutOf(const VerifyRequest& request, const verify::VerifyPlan& plan) {
  const auto nccl = request.nccl ? verify::ncclTimeout : std::chrono::seconds(0);
  return request.timeout.value_or(deadlines::verifyVfs(plan.leases.size(), plan.sizes) + nccl);
}

// The agent of a guest starts some time after boot.
void waitForAgent(Session& session, Hypervisor& hypervisor, const DomainDescription& domain,
                  std::chrono::seconds wait) {
  const auto end = std::chrono::steady_clock::now() + wait;
  if (wait.count() != 0) {
    session.progress().show("waiting for the guest agent of " + domain.name);
  }
  while (std::chrono::steady_clock::now() < end) {
    try {
      agent::Agent(hypervisor, domain.uuid, domain.name, deadlines::agentPing,
                   checkpointOf(session))
          .call("guest-ping");
      return;
    } catch (const Error& error) {
      session.verbose(error.what());
    }
    std::this_thread::sleep_for(std::chrono::seconds(1));
  }
}

verify::VerifyWatch watchOf(Session& session) {
  return {[&session](const Lease& lease) { return trafficOf(session, lease); },
          [&session](std::size_t done, std::size_t all) {
            const std::string part =
                "copying the probe: " + std::to_string(done * 100 / all) + " %";
            session.verbose(part);
            session.progress().show(part);
          },
          {},
          [&session](const std::string& part) { session.progress().show(part); }};
}

agent::Agent::Checkpoint checkpointOf(Session& session) {
  return [&session] {
    session.progress().tick();
    StopSignals::throwIfAsked();
  };
}

void keepReport(Session& session, const VerifyReport& report) {
  std::ostringstream text;
  report::writeVerify(text, report, {.json = true});
  state::keepReport(session.options().stateDirectory, report.domain, report.time, text.str());
}

// Failures only, and never at the cost of the report.
void explain(Session& session, const Uuid& domain, VerifyReport& report) {
  if (std::ranges::none_of(report.findings, [](const Finding& finding) {
        return finding.outcome == Outcome::failed;
      })) {
    return;
  }
  try {
    if (const auto log = doctor::relevantKernelLog(session.root())) {
      explainByKernelLog(doctor::readKernelLines(*log), leasesOf(session.readLeases(), domain),
                         report);
    }
  } catch (const Error& error) {
    session.warn(withRemedy(error));
  }
}

VerifyReport verifyVm(Session& session, const DomainDescription& domain,
                      const VerifyRequest& request) {
  session.requireLocalLibvirt("verify");
  throwIfFaulty(session, domain.name, toString(domain.uuid));  // its limits are unknown
  session.operations().setDomain(domain.uuid, domain.name);
  const ScopeGuard clearLine([&session] { session.progress().clear(); });
  const auto begin = std::filesystem::file_time_type::clock::now();
  VerifyReport report = request.peer ? verifyWithPeer(session, domain, request)
                                     : verifyAlone(session, domain, request);
  judgeSettings(session, domain, report);
  explain(session, domain.uuid, report);
  explainByHostsMapping(session, domain, report);
  report.domain = domain.uuid;
  report.domainName = domain.name;
  report.time = utcNow();
  report::boundTexts(report);
  keepIfStandard(session, domain, request, report, begin);
  session.operations().end(endingOf(report));
  return report;
}

}  // namespace vfpass::commands
