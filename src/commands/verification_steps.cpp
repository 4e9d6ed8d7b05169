#include <algorithm>
#include <iterator>
#include <set>
#include <string>

#include "drift.hpp"
#include "verification_steps.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/plan/lease_device.hpp"
#include "vfpass/report/verify_report.hpp"
#include "vfpass/state/verification_records.hpp"
#include "vfpass/verify/verify_guest.hpp"

namespace vfpass::commands {
namespace {

// Figures of another peer say nothing about this one.
std::vector<Figure> lastNcclRun(Session& session, const DomainDescription& domain,
                                const std::string& peerName) {
  for (const auto& kept : state::keptReports(session.options().stateDirectory, domain.uuid)) {
    const auto saved = report::readVerification(kept.text);
    if (!saved || saved->report.peerName != peerName) {
      continue;
    }
    std::vector<Figure> figures = saved->report.figures;
    std::erase_if(figures, [](const Figure& each) { return each.source != verify::ncclFigures; });
    if (!figures.empty()) {
      return figures;
    }
  }
  return {};
}

// `-b 8 -e 8G -f 2` of the OKE document's command, and the size of its table above that.
std::vector<std::uint64_t> allNcclSizes() {
  std::vector<std::uint64_t> sizes;
  for (std::uint64_t bytes = 8; bytes <= std::uint64_t{8} << 30U; bytes *= 2) {
    sizes.push_back(bytes);
  }
  sizes.push_back(std::uint64_t{10} << 30U);
  return sizes;
}

}  // namespace

std::vector<std::uint64_t> ncclSizesOf(const VerifyRequest& request) {
  if (request.ncclBytes) {
    return {*request.ncclBytes};
  }
  return request.sizes ? allNcclSizes() : verify::NcclTest{}.sizes;
}

void addNccl(Session& session, const DomainDescription& domain, const VerifyRequest& request,
             const std::vector<verify::PairGuest>& guests, const agent::ProbeFile& probe,
             const verify::VerifyPlan& plan, const std::string& peerName, VerifyReport& report) {
  if (!request.nccl) {
    return;
  }
  verify::NcclTest test;
  test.lastRun = lastNcclRun(session, domain, peerName);
  test.sizes = ncclSizesOf(request);
  verify::verifyNccl(guests, probe, plan, test, watchOf(session), report);
}

namespace {

// `rail0`, `rail0 to rail1`; the subject of a peer's finding begins with the peer's name.
bool isAbout(const Finding& finding, const Lease& lease) {
  return finding.subject == lease.entry || finding.subject.starts_with(lease.entry + " ");
}

std::set<PciAddress> devicesOf(const Finding& finding, const std::vector<Lease>& leases) {
  std::set<PciAddress> devices;
  for (const Lease& lease : leases) {
    const bool isGpu = !isVf(lease) && finding.key.find("gpu") != std::string::npos;
    if (isAbout(finding, lease) || isGpu) {
      devices.insert({lease.device, lease.pf});
    }
  }
  return devices;
}

// The kernel reports the bandwidth of each link that it finds (pcie_print_link_status() in
// drivers/pci/pci.c), which explains a figure only.
bool isAboutSpeed(const doctor::KernelLine& line) {
  return line.text.find("available PCIe bandwidth") != std::string::npos;
}

// Whether the line may be the reason of this finding. A query that a driver refuses changes no
// byte: of what failed with wrong bytes only faults of devices are.
bool mayExplain(const doctor::KernelLine& line, const Finding& finding) {
  using enum doctor::KernelTopic;
  if (isAboutSpeed(line)) {
    return finding.key.starts_with("bandwidth");
  }
  return !verify::hasWrongBytes(finding) ||
         (line.serious && line.topic != resources && line.topic != memoryLock);
}

std::vector<doctor::KernelLine> linesFor(const Finding& finding,
                                         const std::vector<doctor::KernelLine>& lines) {
  std::vector<doctor::KernelLine> own;
  std::ranges::copy_if(lines, std::back_inserter(own),
                       [&](const doctor::KernelLine& line) { return mayExplain(line, finding); });
  return own;
}

// A GPU's summary of tests that failed, which have findings of their own.
bool isSummary(const Finding& finding) {
  return finding.key == "gpu-tested" && finding.seen.starts_with("failed with ");
}

// The first one's findings; further peers only take part in NCCL.
bool isOfPeer(const Finding& finding, const VerifyReport& report) {
  const std::string peer = report.peerName.substr(0, report.peerName.find(", "));
  return !peer.empty() && finding.subject.starts_with(peer + ":");
}

bool isAboutGpuData(const Finding& finding) {
  return finding.key.find("data-") != std::string::npos &&
         finding.key.find("gpu") != std::string::npos;
}

}  // namespace

void explainByPeerMapping(const std::optional<PeerMapping>& peers, VerifyReport& report) {
  if (!peers || peers->possible.value_or(true)) {
    return;
  }
  for (Finding& finding : report.findings) {
    const bool concerns =
        finding.outcome == Outcome::failed && isAboutGpuData(finding) && !isOfPeer(finding, report);
    if (!concerns || verify::hasWrongBytes(finding)) {
      continue;
    }
    finding.seen += " (peer-mapping of this host: " + peers->reason + ")";
    finding.remedy = peers->remedy + (finding.remedy.empty() ? "" : "; then " + finding.remedy);
  }
}

void explainByKernelLog(const std::vector<doctor::KernelLine>& lines,
                        const std::vector<Lease>& leases, VerifyReport& report) {
  for (Finding& finding : report.findings) {
    if (finding.outcome != Outcome::failed || isOfPeer(finding, report) || isSummary(finding)) {
      continue;
    }
    const auto line = doctor::lastLineAbout(linesFor(finding, lines), devicesOf(finding, leases));
    if (!line.empty()) {
      finding.seen += " (kernel: " + line + ")";
    }
  }
}

namespace {

constexpr std::string_view separator = "; ";

// `kernel: WHAT; REMEDY` (drift.hpp); the remedy may be missing.
void addDriftLine(std::string_view line, std::vector<std::string>& seen,
                  std::vector<std::string>& remedies) {
  constexpr std::string_view prefix = "kernel: ";
  line.remove_prefix(line.starts_with(prefix) ? prefix.size() : 0);
  const auto end = line.find(separator);
  seen.emplace_back(line.substr(0, end));
  if (end != std::string_view::npos) {
    remedies.emplace_back(line.substr(end + separator.size()));
  }
}

bool haveSame(const VfSettings& one, const VfSettings& other, Attribute attribute) {
  return only(one, {attribute}) == only(other, {attribute});
}

// The settings that the lease leaves out and that have changed since the guest's start, which set
// neutral values. A driver that refused to do so kept the value from before the first lease, and a
// lease does not record that.
std::vector<Attribute> changedByOthers(const Lease& vf, const VfSettings& seen) {
  const VfSettings started = settingsOf(plan::withoutLeftOvers(vf, seen));
  std::vector<Attribute> changed;
  for (const Attribute attribute : differingAttributes(started, seen)) {
    if (haveSame(settingsOf(vf), {}, attribute) &&
        !haveSame(vf.original.settings, seen, attribute)) {
      changed.push_back(attribute);
    }
  }
  return changed;
}

void addSettingsOfOthers(const Lease& vf, const VfSettings& seen, std::vector<std::string>& lines,
                         std::vector<std::string>& remedies) {
  const VfSettings started = settingsOf(plan::withoutLeftOvers(vf, seen));
  std::vector<std::string> names;
  for (const Attribute attribute : changedByOthers(vf, seen)) {
    names.emplace_back(toString(attribute));
    lines.push_back(names.back() + " is " + describe(seen, attribute) + " instead of " +
                    describe(started, attribute) + ", and the mapping leaves it out");
  }
  if (!names.empty()) {
    const std::string domain = shellArgument(vf.domainName);
    remedies.push_back("add the wanted " + join(names, ", ") + " of " + vf.entry +
                       " to the mapping, then run `vfpass attach " + domain + "`; or shut " +
                       domain + " down, then start it again, to reset it");
  }
}

}  // namespace

Finding judgeLeasedSettings(const Lease& vf, const Inventory& inventory,
                            const std::string& bootId) {
  Finding finding{"vf-settings",   vf.entry,
                  Outcome::passed, "the kernel reports the settings of the lease for this VF",
                  "it does",       ""};
  std::vector<std::string> seen;
  std::vector<std::string> remedies;
  for (const std::string& line : kernelDrift(vf, inventory, bootId, true)) {
    addDriftLine(line, seen, remedies);
  }
  const VirtualFunction* found = findVf(inventory, vf);
  if (found != nullptr && vf.state != LeaseState::reserved && vf.bootId == bootId) {
    addSettingsOfOthers(vf, found->settings, seen, remedies);
  }
  if (!seen.empty()) {
    finding.outcome = Outcome::warning;
    finding.seen = join(seen, separator);
    finding.remedy = remedies.empty() ? "look at `vfpass status`" : join(remedies, separator);
  } else if (const auto hidden = unobservedAttributes(vf, inventory, bootId); !hidden.empty()) {
    finding.outcome = Outcome::waived;
    finding.seen = "the kernel does not show " + join(hidden, ", ");
  }
  return seenByHost(finding);
}

}  // namespace vfpass::commands
