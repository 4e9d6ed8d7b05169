#include "verification_steps.hpp"

#include <set>
#include <string>

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

}  // namespace

void explainByKernelLog(const std::vector<doctor::KernelLine>& lines,
                        const std::vector<Lease>& leases, VerifyReport& report) {
  for (Finding& finding : report.findings) {
    const bool ofPeer =
        !report.peerName.empty() && finding.subject.starts_with(report.peerName + ":");
    if (finding.outcome != Outcome::failed || ofPeer) {
      continue;
    }
    const auto line = doctor::lastLineAbout(lines, devicesOf(finding, leases));
    if (!line.empty()) {
      finding.seen += " (kernel: " + line + ")";
    }
  }
}

}  // namespace vfpass::commands
