#include "party.hpp"

#include <utility>

#include "judge_guest.hpp"

namespace vfpass::verify {
namespace {

std::optional<VfTraffic> notRead(const Lease& /*lease*/) { return std::nullopt; }

}  // namespace

void Party::add(Finding finding) {
  finding = withConfinement(std::move(finding), guest_.reached.view.confinedAs);
  finding.subject = guest_.prefix + finding.subject;
  own_.push_back(report_.findings.size());
  report_.findings.push_back(std::move(finding));
}

void Party::addAll(const std::vector<Finding>& findings) {
  for (const Finding& each : findings) {
    add(each);
  }
}

void Party::addOptional(const std::optional<Finding>& finding) {
  if (finding) {
    add(*finding);
  }
}

void Party::reportUnobserved() {
  if (!guest_.guest.unobserved.empty()) {
    add(seenByHost({"peer-host", "", Outcome::notObservable, "the VM's host can be asked",
                    guest_.guest.unobserved, guest_.guest.unobservedRemedy}));
  }
}

std::optional<PathEnd> Party::endOf(const Lease& lease, agent::Agent& agent) {
  const auto host = hostSideOf(lease);
  const GuestView& view = guest_.reached.view;
  const DeviceVerdict verdict =
      judgeEntry(lease, view, host ? &*host : nullptr, guest_.guest.leases, guest_.guest.gpus);
  addAll(verdict.findings);
  if (!verdict.port) {
    return std::nullopt;
  }
  used_.push_back({lease.entry, *verdict.port});
  return PathEnd{agent,
                 guest_.reached.probe,
                 lease,
                 *verdict.port,
                 host.value_or(HostSide{}),
                 guest_.guest.traffic ? guest_.guest.traffic : notRead,
                 guest_.guest.machine,
                 guest_.prefix + lease.entry,
                 whyNoRdmaCm(view, *verdict.port)};
}

std::vector<TestedGpu> Party::gpusFor(const PathEnd& end) {
  const GuestView& view = guest_.reached.view;
  if (!guest_.gpuUsable) {
    skipUnusableGpus(view, gpusAssigned(end.lease), coverage_);
    return {};
  }
  auto gpus = gpusOf(end.lease.entry, end.port.pci, view, gpusAssigned(end.lease), coverage_);
  if (gpus.empty() && guest_.guest.gpus.empty()) {
    add(noGpuForCuda(end.lease.entry));
  }
  return gpus;
}

void Party::useGpu(PathEnd& end, const std::vector<TestedGpu>& gpus, std::size_t turn) {
  end.gpu = gpus[turn % gpus.size()];
  end.host.gpu = end.gpu->path;
  if (turn < gpus.size()) {
    addAll(judgeGpuPlace(end.lease.entry, guest_.reached.view, end.port.pci, *end.gpu));
  }
}

void Party::skipGpus(const Lease& lease, const std::string& reason) {
  for (const std::size_t each : gpusAssigned(lease)) {
    coverage_.skipped(guest_.guest.gpus[each].entry, reason);
  }
}

void Party::skipGpus(const std::vector<TestedGpu>& gpus, const std::string& reason) {
  for (const TestedGpu& gpu : gpus) {
    coverage_.skipped(gpu.entry, reason);
  }
}

void Party::record(const PathEnd& end, bool passed) {
  coverage_.tested(*end.gpu, end.lease.entry, passed);
}

void Party::reportCoverage(GpuTest test) {
  if (testsGpus(test, guest_.guest.gpus)) {
    addAll(coverage_.findings());
  }
}

const std::optional<GuestView>& Party::afterRun() {
  if (!asked_ && !guest_.reached.probe.path.empty()) {
    asked_ = true;
    if (auto after = readErrors(guest_.guest.agent, guest_.reached.probe)) {
      after_ = std::move(after);  // otherwise an earlier one still explains earlier failures
    }
  }
  return after_;
}

void Party::quoteLog(const std::vector<std::size_t>& which, const std::string& source) {
  const auto& after = afterRun();
  std::vector<Finding> findings;
  for (const std::size_t each : which) {
    findings.push_back(report_.findings[each]);
  }
  quoteKernelLog(findings, after ? after->kernelLog : std::vector<std::string>{}, source);
  for (std::size_t i = 0; i < which.size(); ++i) {
    report_.findings[which[i]] = findings[i];
  }
}

void Party::take(const Party& path, std::size_t first) {
  for (const std::size_t each : path.own_) {
    own_.push_back(first + each);
  }
  used_.insert(used_.end(), path.used_.begin(), path.used_.end());
  coverage_.add(path.coverage_);
}

std::optional<HostSide> Party::hostSideOf(const Lease& lease) {
  if (!guest_.guest.host) {
    return std::nullopt;
  }
  try {
    return guest_.guest.host(lease);
  } catch (const Error& error) {
    add(seenByHost({"device-host", lease.entry, Outcome::notObservable, "the host sees the VF",
                    error.what(), error.remedy()}));
    return std::nullopt;
  }
}

std::vector<std::size_t> Party::gpusAssigned(const Lease& lease) const {
  const auto found = guest_.gpus.find(lease.entry);
  return found == guest_.gpus.end() ? std::vector<std::size_t>{} : found->second;
}

}  // namespace vfpass::verify
