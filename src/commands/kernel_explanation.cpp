#include "verification_steps.hpp"

#include <algorithm>
#include <iterator>
#include <set>
#include <string>

#include "vfpass/verify/verify_guest.hpp"

namespace vfpass::commands {
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

}  // namespace

void explainByKernelLog(const std::vector<doctor::KernelLine>& lines,
                        const std::vector<Lease>& leases, VerifyReport& report) {
  for (Finding& finding : report.findings) {
    const bool ofPeer =
        !report.peerName.empty() && finding.subject.starts_with(report.peerName + ":");
    if (finding.outcome != Outcome::failed || ofPeer || isSummary(finding)) {
      continue;
    }
    const auto line = doctor::lastLineAbout(linesFor(finding, lines), devicesOf(finding, leases));
    if (!line.empty()) {
      finding.seen += " (kernel: " + line + ")";
    }
  }
}

}  // namespace vfpass::commands
