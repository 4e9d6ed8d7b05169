#include <algorithm>

#include <array>
#include <cmath>
#include <ctime>

#include "prometheus_text.hpp"
#include "vfpass/finding.hpp"
#include "vfpass/metrics/metrics.hpp"
#include "vfpass/topology/pcie_link.hpp"

namespace vfpass::metrics {
namespace {

void addCollection(const Observation& observation, Exposition& target) {
  target.add(families::buildInfo, {observation.version}, std::uint64_t{1});
  for (const auto& [part, success] : observation.collected) {
    target.add(families::collectorSuccess, {part}, std::uint64_t{success});
  }
  if (observation.libvirtUp) {
    target.add(families::libvirtUp, {}, std::uint64_t{*observation.libvirtUp});
  }
}

/// `not_observable`: as in JSON.
std::string labelOf(Outcome outcome) {
  std::string text(toString(outcome));
  std::ranges::replace(text, ' ', '_');
  return text;
}

// Empty where unknown, as sriov-network-metrics-exporter does.
std::string numaLabel(int node) { return node < 0 ? std::string() : std::to_string(node); }

// MAC or port GUID; empty where the kernel does not report it.
std::string macLabel(const PhysicalFunction& pf, const VirtualFunction& vf) {
  if (!vf.settingsReadable) {
    return {};
  }
  if (pf.linkLayer == LinkLayer::infiniband) {
    return vf.settings.portGuid ? toString(*vf.settings.portGuid) : std::string();
  }
  return vf.settings.mac ? toString(*vf.settings.mac) : std::string();
}

std::string vlanLabel(const VirtualFunction& vf) {
  const bool known = vf.settingsReadable && vf.settings.vlan;
  return known ? std::to_string(vf.settings.vlan->id) : std::string();
}

void addPf(const PhysicalFunction& pf, Exposition& target) {
  const std::string address = toString(pf.address);
  target.add(families::pfInfo,
             {pf.driver, std::string(toString(pf.linkLayer)), numaLabel(pf.numaNode), address,
              pf.netdev(), pf.rdmaDevice(), pf.serial},
             std::uint64_t{1});
  target.add(families::pfVfs, {address, pf.netdev()}, std::uint64_t{pf.vfs.size()});
  target.add(families::pfVfsLimit, {address, pf.netdev()}, std::uint64_t{pf.totalVfs});
}

void addLinks(const Observation& observation, Exposition& target) {
  for (const DeviceLink& link : observation.links) {
    target.add(families::pcieLinkShare, {toString(link.device)}, link.share);
  }
}

void addVf(const Observation& observation, const PhysicalFunction& pf, const VirtualFunction& vf,
           Exposition& target) {
  const Lease* lease =
      observation.leases ? leaseOfVf(*observation.leases, pf.address, vf.index) : nullptr;
  target.add(families::vfInfo,
             {vf.driver, lease != nullptr ? lease->entry : "",
              vf.iommuGroup ? std::to_string(*vf.iommuGroup) : "", macLabel(pf, vf),
              numaLabel(pf.numaNode), toString(vf.address), pf.netdev(), vf.rdmaDevice(),
              lease != nullptr ? toString(lease->domain) : "", std::to_string(vf.index),
              vlanLabel(vf), lease != nullptr ? lease->domainName : ""},
             std::uint64_t{1});
}

void addStatistics(const std::map<unsigned, VfStatistics>& table, const PhysicalFunction& pf,
                   const VirtualFunction& vf, Exposition& target) {
  const auto found = table.find(vf.index);
  if (found == table.end()) {
    return;
  }
  for (const auto& [name, value] : found->second) {
    target.add(
        sriovFamily(name),
        {numaLabel(pf.numaNode), toString(vf.address), pf.netdev(), std::to_string(vf.index)},
        value);
  }
}

void addDevices(const Observation& observation, Exposition& target) {
  for (const PhysicalFunction& pf : observation.pfs) {
    addPf(pf, target);
    const auto table = observation.statistics.find(pf.address);
    for (const VirtualFunction& vf : pf.vfs) {
      addVf(observation, pf, vf, target);
      if (table != observation.statistics.end()) {
        addStatistics(table->second, pf, vf, target);
      }
    }
  }
}

std::string netdevOf(const Observation& observation, const PciAddress& pf) {
  const auto found = std::ranges::find(observation.pfs, pf, &PhysicalFunction::address);
  return found == observation.pfs.end() ? std::string() : found->netdev();
}

void addCounts(const std::vector<Lease>& leases, Exposition& target) {
  for (const LeaseState state : {LeaseState::reserved, LeaseState::starting, LeaseState::running}) {
    const auto count = std::ranges::count(leases, state, &Lease::state);
    target.add(families::leases, {std::string(toString(state))}, static_cast<std::uint64_t>(count));
  }
}

void addInfo(const Observation& observation, const Lease& lease, Exposition& target) {
  const auto index = vfIndexOf(lease);
  target.add(families::leaseInfo,
             {lease.entry, std::string(toString(kindOf(lease))), guestIdentityOf(lease),
              toString(lease.device), index ? netdevOf(observation, lease.pf) : "",
              std::string(toString(lease.state)), toString(lease.domain),
              index ? std::to_string(*index) : "", lease.domainName},
             std::uint64_t{1});
}

void addEntry(const report::StatusEntry& entry, Exposition& target) {
  const Lease& lease = entry.lease;
  const std::string uuid = toString(lease.domain);
  const std::vector<std::string> labels{lease.entry, toString(lease.device), uuid,
                                        lease.domainName};
  target.add(families::leaseDrift, labels, std::uint64_t{entry.drift.size()});
  target.add(families::leaseUnobservable, labels, std::uint64_t{entry.notObservable.size()});
  target.add(families::domainRunning, {uuid, lease.domainName}, std::uint64_t{entry.domainActive});
}

void addLeases(const Observation& observation, Exposition& target) {
  if (observation.leases) {
    addCounts(*observation.leases, target);
    for (const Lease& lease : *observation.leases) {
      addInfo(observation, lease, target);
    }
  }
  if (observation.entries) {
    for (const auto& entry : *observation.entries) {
      addEntry(entry, target);
    }
  }
  for (const auto& refused : observation.refused) {
    target.add(families::metadataRefused, {toString(refused.domain), refused.domainName},
               std::uint64_t{1});
  }
  for (const auto& [vm, attached] : observation.mappings) {
    target.add(families::mappingAttached, {vm}, std::uint64_t{attached});
  }
  if (observation.configurationProblems) {
    target.add(families::configurationProblems, {},
               std::uint64_t{*observation.configurationProblems});
  }
  if (observation.openOperations) {
    target.add(families::openOperations, {}, std::uint64_t{*observation.openOperations});
  }
}

void addQuarantine(const Observation& observation, Exposition& target) {
  if (!observation.quarantined) {
    return;
  }
  target.add(families::quarantinedDevices, {}, std::uint64_t{observation.quarantined->size()});
  for (const QuarantinedDevice& device : *observation.quarantined) {
    target.add(families::quarantineInfo, {toString(device.device), device.reason},
               std::uint64_t{1});
  }
}

constexpr std::array outcomes{Outcome::passed, Outcome::failed, Outcome::notObservable,
                              Outcome::waived, Outcome::warning};
constexpr std::array results{"passed", "failed", "not_observable", "unreadable"};

bool isProblem(Outcome outcome) {
  return outcome == Outcome::failed || outcome == Outcome::warning;
}

// `2026-11-21T09:40:00Z`; nullopt for any other form.
std::optional<std::uint64_t> secondsOf(const std::string& time) {
  std::tm parts{};
  const char* end = ::strptime(time.c_str(), "%Y-%m-%dT%H:%M:%SZ", &parts);
  const std::time_t seconds = end != nullptr && *end == '\0' ? ::timegm(&parts) : -1;
  return seconds < 0 ? std::nullopt : std::optional(static_cast<std::uint64_t>(seconds));
}

double bytesPerSecond(double gigabits) { return std::round(gigabits * 1e9 / 8); }

// Nanoseconds are finer than any measurement.
double secondsOfMicroseconds(double microseconds) { return std::round(microseconds * 1e3) / 1e9; }

/// The metrics of one VM.
class VerificationWriter {
 public:
  VerificationWriter(const Verification& verification, Exposition& target)
      : verification_(verification), uuid_(toString(verification.domain)), target_(target) {}

  void write() {
    const std::string& vm = verification_.domainName;
    target_.add(families::verifyPending, {uuid_, vm}, std::uint64_t{verification_.pending});
    if (!verification_.hasReport) {
      return;
    }
    const auto& saved = verification_.saved;
    for (const std::string result : results) {
      const bool applies = saved ? saved->result == result : result == "unreadable";
      target_.add(families::verifyResult, {result, uuid_, vm}, std::uint64_t{applies});
    }
    if (saved) {
      if (const auto seconds = secondsOf(saved->report.time)) {
        target_.add(families::verifyTime, {uuid_, vm}, *seconds);
      }
      writeFindings(saved->report.findings);
      writeFigures(saved->report.figures);
    }
  }

 private:
  void writeFindings(const std::vector<Finding>& findings) {
    std::map<std::string, std::map<Outcome, std::uint64_t>> counts;  // by entry
    for (const Finding& each : findings) {
      ++counts[each.subject][each.outcome];
      if (isProblem(each.outcome)) {
        target_.add(families::verifyProblem,
                    {each.key, each.subject, std::string(toString(each.observer)),
                     labelOf(each.outcome), uuid_, verification_.domainName},
                    std::uint64_t{1});
      }
    }
    for (auto& [entry, byOutcome] : counts) {
      for (const Outcome outcome : outcomes) {
        target_.add(families::verifyFindings,
                    {entry, labelOf(outcome), uuid_, verification_.domainName}, byOutcome[outcome]);
      }
    }
  }

  // A series of message sizes is for a report, not for a time series.
  void writeFigures(const std::vector<Figure>& figures) {
    std::size_t count = 0;
    for (const Figure& each : figures) {
      if (each.source == sizeFigures || count == mostFigures) {
        continue;
      }
      ++count;
      if (each.medianMicroseconds) {
        writeLatency(each);
      } else {
        writeBandwidth(each);
      }
    }
  }

  void writeBandwidth(const Figure& figure) {
    const std::vector<std::string> labels{
        figure.subject,          figure.gpu,
        figure.memory,           std::to_string(figure.messageBytes),
        figure.operation,        figure.relaxedOrdering ? "yes" : "no",
        figure.source,           uuid_,
        verification_.domainName};
    target_.add(families::verifyBandwidth, labels, bytesPerSecond(figure.gigabitsPerSecond));
    // VFs that were measured at the same time can share more than the limit knows, such as the link
    // of a switch.
    if (figure.limit && verification_.saved->report.concurrentVfs <= 1) {
      target_.add(families::verifyLimit, labels, bytesPerSecond(*figure.limit));
    }
  }

  void writeLatency(const Figure& figure) {
    const auto add = [&](const char* statistic, double microseconds) {
      target_.add(families::verifyLatency,
                  {figure.subject, figure.gpu, figure.memory, std::to_string(figure.messageBytes),
                   figure.operation, figure.source, statistic, uuid_, verification_.domainName},
                  secondsOfMicroseconds(microseconds));
    };
    add("median", *figure.medianMicroseconds);
    if (figure.tailMicroseconds) {
      add("p99", *figure.tailMicroseconds);
    }
  }

  const Verification& verification_;
  std::string uuid_;
  Exposition& target_;
};

constexpr const char* acceptedLabel = "accepted";

std::string resultLabel(const Diagnosis& each) {
  return isAccepted(each) ? acceptedLabel : labelOf(each.finding.outcome);
}

void addDoctor(const Observation& observation, Exposition& target) {
  if (!observation.diagnoses) {
    return;
  }
  const auto count = [&](const std::string& result) {
    const auto found = std::ranges::count(*observation.diagnoses, result, resultLabel);
    target.add(families::doctorFindings, {result}, static_cast<std::uint64_t>(found));
  };
  for (const Outcome outcome : outcomes) {
    count(labelOf(outcome));
  }
  count(acceptedLabel);
  for (const Diagnosis& each : *observation.diagnoses) {
    if (isProblem(each.finding.outcome)) {
      target.add(families::doctorProblem,
                 {each.finding.key, resultLabel(each), each.finding.subject}, std::uint64_t{1});
    }
  }
}

void addVerifications(const Observation& observation, Exposition& target) {
  for (const Verification& each : observation.verifications) {
    VerificationWriter(each, target).write();
  }
}

}  // namespace

std::string render(const Observation& observation) {
  Exposition target;
  addCollection(observation, target);
  addDevices(observation, target);
  addLinks(observation, target);
  addLeases(observation, target);
  addQuarantine(observation, target);
  addDoctor(observation, target);
  addVerifications(observation, target);
  return target.text();
}

std::vector<DeviceLink> linksOf(const Topology& topology, const std::set<PciAddress>& devices) {
  std::vector<DeviceLink> links;
  for (std::size_t number = 0; number < topology.functions.size(); ++number) {
    const Device& function = topology.functions[number];
    if (!devices.contains(function.address) || function.link.width == 0) {
      continue;
    }
    const auto path = topology::linksAbove(topology, number);
    const auto slowest = std::ranges::min_element(path, {}, &topology::Link::share);
    links.push_back({function.address, slowest->share});
  }
  return links;
}

}  // namespace vfpass::metrics
