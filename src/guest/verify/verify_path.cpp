#include "verify_path.hpp"

#include <algorithm>
#include <utility>

#include "guest_tools.hpp"
#include "judge_bandwidth.hpp"
#include "judge_pair.hpp"
#include "transfer_options.hpp"
#include "vfpass/verify/verify_pair.hpp"

namespace vfpass::verify {
namespace {

// The PF's own switch passes packets between its VFs, so the data crosses the PF's PCI Express link
// twice and its port never.
Ends endsOf(const PathEnd& near, const PathEnd& far) {
  return near.machine == far.machine && near.lease.pf == far.lease.pf ? Ends::loopback
                                                                      : Ends::apart;
}

Finding insideCard(const std::string& subject, const Lease& lease) {
  return seenByHost(
      {"peer-wire", subject, Outcome::waived, "",
       "both VFs belong to PF " + toString(lease.pf) +
           ": the data stays inside the card and never reaches the wire; bandwidth is "
           "compared with the loopback limit",
       ""});
}

}  // namespace

PathVerification::PathVerification(const std::vector<GuestUnderTest>& guests, PathPart part,
                                   const VerifyPlan& plan, const VerifyWatch& watch)
    : guests_(guests), part_(std::move(part)), plan_(plan), watch_(watch) {
  for (const GuestUnderTest& each : guests) {
    parties_.emplace_back(each, report_);
  }
}

void PathVerification::run(agent::Agent& agent) {
  try {
    verify(agent);
  } catch (const Error& error) {
    layer_.reportError(error);
    ended_ = false;
  }
}

std::optional<WorkingPair> PathVerification::working() const {
  return hostPassed_ && !isLoopback()
             ? std::optional(WorkingPair{part_.subject, ends_.front(), ends_.back()})
             : std::nullopt;
}

std::string PathVerification::key(const std::string& name) const {
  return isLoopback() ? name : "peer-" + name;
}

void PathVerification::verify(agent::Agent& agent) {
  layer_.enter(key("data-host"), "the probe moves data");
  hostPassed_ = openEnds(agent) && moveThroughHost();
  if (!hostPassed_) {
    for (std::size_t i = 0; i < parties_.size(); ++i) {
      parties_[i].skipGpus(part_.leases[i], part_.leases[i].entry + " failed before");
    }
    return;
  }
  moveThroughGpus();
  runTools(std::nullopt);
  compare("host", 0);
  addOptional(judgeOrdering(part_.subject, report_.figures));
}

// Also looks at the second one if the first one has failed.
bool PathVerification::openEnds(agent::Agent& agent) {
  for (std::size_t i = 0; i < parties_.size(); ++i) {
    if (auto end = parties_[i].endOf(part_.leases[i], i == 0 ? agent : guests_[i].guest.agent)) {
      ends_.push_back(std::move(*end));
    }
  }
  return ends_.size() == parties_.size();
}

bool PathVerification::moveThroughHost() {
  watch_.show(part_.position + ": host memory");
  initiator().idle = part_.idle;
  DataPath data = path();
  if (!isLoopback() && !reachTarget(data)) {
    return false;
  }
  if (!data.tryMemory("host")) {
    return false;
  }
  if (sizesWanted(plan_)) {
    data.trySizes("host");
  }
  return true;
}

bool PathVerification::reachTarget(DataPath& path) {
  const Finding network = judgeNetwork(part_.subject, initiator().lease, target().lease);
  report_.findings.push_back(network);
  if (network.outcome != Outcome::passed) {
    return false;
  }
  if (endsOf(initiator(), target()) == Ends::loopback) {
    report_.findings.push_back(insideCard(part_.subject, initiator().lease));
  }
  path.ping();
  if (!path.reach()) {
    return false;
  }
  path.connectByRdmaCm();
  return true;
}

// The end with fewer GPUs uses each of them several times.
void PathVerification::moveThroughGpus() {
  std::vector<std::vector<TestedGpu>> gpus;
  for (std::size_t i = 0; i < parties_.size(); ++i) {
    gpus.push_back(parties_[i].gpusFor(ends_[i]));
  }
  // Without GPUs at both ends, only mixed memory can be tested.
  if (std::ranges::any_of(gpus, [](const auto& ofEnd) { return ofEnd.empty(); })) {
    reportMissingGpu(gpus);
    moveThroughOneGpu(gpus);
    return;
  }
  gpusPassed_ = true;
  std::size_t turns = 0;
  for (const auto& ofEnd : gpus) {
    turns = std::max(turns, ofEnd.size());
  }
  for (std::size_t turn = 0; turn < turns; ++turn) {
    for (std::size_t i = 0; i < parties_.size(); ++i) {
      parties_[i].useGpu(ends_[i], gpus[i], turn);
    }
    const bool passed = moveThroughGpu();
    for (std::size_t i = 0; i < parties_.size(); ++i) {
      parties_[i].record(ends_[i], passed);
    }
    gpusPassed_ = gpusPassed_ && passed;
  }
}

bool PathVerification::moveThroughGpu() {
  watch_.show(part_.position + ": GPU memory");
  layer_.enter(key("data-gpu"), "the probe moves data");
  const std::size_t first = report_.figures.size();
  DataPath data = path();
  if (!data.tryMemory("gpu")) {
    const auto findings = mixedNotTried(key("data-"), part_.subject);
    report_.findings.insert(report_.findings.end(), findings.begin(), findings.end());
    return false;
  }
  data.tryMixedMemory("gpu");
  data.tryMixedMemory("host");
  if (sizesWanted(plan_)) {
    data.trySizes("gpu");
  }
  addOptional(besideHost(first));
  runTools(initiator().gpu);
  compare("gpu", first);
  return true;
}

// GPU memory of the VM that has GPUs, and host memory of the other.
void PathVerification::moveThroughOneGpu(const std::vector<std::vector<TestedGpu>>& gpus) {
  DataPath data = path();
  for (std::size_t i = 0; i < parties_.size(); ++i) {
    for (std::size_t turn = 0; turn < gpus[i].size(); ++turn) {
      parties_[i].useGpu(ends_[i], gpus[i], turn);
      data.tryMixedMemory(i == 0 ? "gpu" : "host");
    }
  }
}

// One VM has GPUs and the other none, and nobody excluded GPU memory.
void PathVerification::reportMissingGpu(const std::vector<std::vector<TestedGpu>>& gpus) {
  if (gpus.front().empty() == gpus.back().empty()) {
    return;
  }
  const std::string without = gpus.front().empty() ? "this VM" : guests_.back().guest.domainName;
  report_.findings.push_back(
      {"peer-data-gpu", part_.subject, Outcome::notObservable, "GPU memory at both ends",
       "not tested: " + without + " has no GPU to use",
       "choose a peer with a GPU; or exclude GPU memory with verify: {paths: [host]} in the "
       "mapping"});
  for (std::size_t i = 0; i < parties_.size(); ++i) {
    parties_[i].skipGpus(gpus[i], "no GPU at the other end");
  }
}

// They are for one guest alone.
void PathVerification::runTools(const std::optional<TestedGpu>& gpu) {
  if (isLoopback() && plan_.tools) {
    layer_.enter("perftest", "the guest's own perftest runs");
    report_.findings.push_back(
        runPerftest(initiator().agent, guests_.front().tools, initiator().port,
                    {part_.subject, plan_.messageBytes, plan_.iterations, gpu}, report_.figures));
  }
}

// Each end has its own limit; the lower one applies.
void PathVerification::compare(const char* memory, std::size_t first) {
  std::optional<Limit> lowest;
  for (const PathEnd& end : ends_) {
    const auto limit =
        limitFor(end.lease, end.port, end.host, memory, endsOf(initiator(), target()));
    if (limit && (!lowest || limit->gigabits < lowest->gigabits)) {
      lowest = limit;
    }
  }
  addOptional(compareWithLimit(part_.subject, memory, initiator().port, lowest, plan_.minimumShare,
                               first, report_.figures));
}

// The end whose GPU is farther from its NIC on the host explains the figure.
std::optional<Finding> PathVerification::besideHost(std::size_t first) {
  const bool targetIsWorse = target().host.gpu && target().host.gpu->throughRootComplex;
  const PathEnd& worse = targetIsWorse ? target() : initiator();
  return judgeBesideHost(part_.subject, figuresFrom(first, report_.figures), worse.host.gpu,
                         worse.gpu->distance);
}

void PathVerification::addOptional(const std::optional<Finding>& finding) {
  if (finding) {
    report_.findings.push_back(*finding);
  }
}

namespace {

template <typename Match>
void takePairs(std::vector<Lease>& initiators, std::vector<Lease>& targets,
               std::vector<LeasePair>& pairs, const Match& match) {
  for (auto initiator = initiators.begin(); initiator != initiators.end();) {
    const auto target =
        std::ranges::find_if(targets, [&](const Lease& each) { return match(*initiator, each); });
    if (target == targets.end()) {
      ++initiator;
      continue;
    }
    pairs.push_back({*initiator, *target});
    targets.erase(target);
    initiator = initiators.erase(initiator);
  }
}

}  // namespace

std::vector<LeasePair> pairLeases(const std::vector<Lease>& initiators,
                                  const std::vector<Lease>& targets) {
  std::vector<Lease> near = initiators;
  std::vector<Lease> far = targets;
  std::vector<LeasePair> pairs;
  takePairs(near, far, pairs,
            [](const Lease& one, const Lease& other) { return one.entry == other.entry; });
  takePairs(near, far, pairs, [](const Lease& one, const Lease& other) {
    return vfOf(one).infiniband == vfOf(other).infiniband;
  });
  return pairs;
}

}  // namespace vfpass::verify
