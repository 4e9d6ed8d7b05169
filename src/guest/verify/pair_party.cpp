#include "pair_party.hpp"

#include "judge_guest.hpp"
#include "judge_pair.hpp"

namespace vfpass::verify {
namespace {

std::optional<VfTraffic> notRead(const Lease& /*lease*/) { return std::nullopt; }

}  // namespace

bool PairParty::reach(const agent::ProbeFile& probe, const VerifyPlan& plan,
                      const VerifyWatch& watch) {
  try {
    reachGuest(guest_.agent, probe, plan.folder, watch.pushed, layer_, reached_);
    return true;
  } catch (const Error& error) {
    layer_.reportError(error);
    return false;
  }
}

std::optional<PairEnd> PairParty::endOf(const Lease& lease) {
  const auto host = hostSideOf(lease);
  const DeviceVerdict verdict =
      judgeEntry(lease, reached_.view, host ? &*host : nullptr, guest_.gpus);
  addAll(verdict.findings);
  if (!verdict.port) {
    skipGpus(lease, lease.entry + " failed before");
    return std::nullopt;
  }
  used_.push_back({lease.entry, *verdict.port});
  return PairEnd{guest_.agent,
                 reached_.probe,
                 lease,
                 *verdict.port,
                 host.value_or(HostSide{}),
                 guest_.traffic ? guest_.traffic : notRead,
                 guest_.machine,
                 {},
                 prefix_ + lease.entry,
                 whyNoRdmaCm(reached_.view, *verdict.port)};
}

void PairParty::reportUnobserved() {
  if (!guest_.unobserved.empty()) {
    add(seenByHost({"peer-host", "", Outcome::notObservable, "the VM's host can be asked",
                    guest_.unobserved, guest_.unobservedRemedy}));
  }
}

void PairParty::judgeGpu(GpuTest test) {
  const bool tests = testsGpus(test, guest_.gpus);
  const auto findings =
      tests ? judgeGpus(reached_.view, true, guest_.nvlink, guest_.leases, guest_.gpus)
            : std::vector{gpusNotTested(test, reached_.view)};
  gpuUsable_ = tests && isGpuUsable(findings);
  addAll(findings);
}

std::vector<TestedGpu> PairParty::gpusFor(const PairEnd& end) {
  std::vector<TestedGpu> gpus;
  if (!gpuUsable_) {
    skipUnusableGpus(reached_.view, assigned_[end.lease.entry], coverage_);
    return gpus;
  }
  gpus =
      gpusOf(end.lease.entry, end.port.pci, reached_.view, assigned_[end.lease.entry], coverage_);
  if (gpus.empty() && guest_.gpus.empty()) {
    add(noGpuForCuda(end.lease.entry));
  }
  for (const TestedGpu& gpu : gpus) {
    addAll(judgeGpuPlace(end.lease.entry, reached_.view, end.port.pci, gpu));
  }
  return gpus;
}

void PairParty::skipGpus(const Lease& lease, const std::string& reason) {
  for (const std::size_t each : assigned_[lease.entry]) {
    coverage_.skipped(guest_.gpus[each].entry, reason);
  }
}

void PairParty::skipGpus(const std::vector<TestedGpu>& gpus, const std::string& reason) {
  for (const TestedGpu& gpu : gpus) {
    coverage_.skipped(gpu.entry, reason);
  }
}

void PairParty::record(const PairEnd& end, bool passed) {
  coverage_.tested(*end.gpu, end.lease.entry, passed);
}

void PairParty::reportSystem() {
  addAll(judgeGuestSystem(reached_.view));
  // Why a host that was not asked tells nothing is another finding.
  if (!guest_.placement && guest_.host) {
    add(placementNotReported());
  }
  if (const auto placement = guest_.placement ? judgePlacement(*guest_.placement) : std::nullopt) {
    add(*placement);
  }
}

void PairParty::reportAfterRun() {
  readAfterRun();
  addAll(judgeAfterRun(used_, reached_.view, after_));
}

void PairParty::quoteLog(const std::vector<std::size_t>& ofPairs) {
  readAfterRun();
  quoteLog(own_, "the guest's kernel log");
  quoteLog(ofPairs, "kernel log of " + guest_.domainName);
}

void PairParty::reportCoverage(GpuTest test) {
  if (testsGpus(test, guest_.gpus)) {
    addAll(coverage_.findings());
  }
}

void PairParty::add(Finding finding) {
  finding = withConfinement(std::move(finding), reached_.view.confinedAs);
  finding.subject = prefix_ + finding.subject;
  own_.push_back(report_.findings.size());
  report_.findings.push_back(std::move(finding));
}

void PairParty::addAll(const std::vector<Finding>& findings) {
  for (const Finding& each : findings) {
    add(each);
  }
}

void PairParty::readAfterRun() {
  if (!askedAfterRun_ && !reached_.probe.path.empty()) {
    askedAfterRun_ = true;
    after_ = readErrors(guest_.agent, reached_.probe);
  }
}

void PairParty::quoteLog(const std::vector<std::size_t>& which, const std::string& source) {
  std::vector<Finding> findings;
  for (const std::size_t each : which) {
    findings.push_back(report_.findings[each]);
  }
  quoteKernelLog(findings, after_ ? after_->kernelLog : std::vector<std::string>{}, source);
  for (std::size_t i = 0; i < which.size(); ++i) {
    report_.findings[which[i]] = findings[i];
  }
}

std::optional<HostSide> PairParty::hostSideOf(const Lease& lease) {
  if (!guest_.host) {
    return std::nullopt;
  }
  try {
    return guest_.host(lease);
  } catch (const Error& error) {
    add(seenByHost({"device-host", lease.entry, Outcome::notObservable, "the host sees the VF",
                    error.what(), error.remedy()}));
    return std::nullopt;
  }
}

}  // namespace vfpass::verify
