#include "vfpass/report/status_report.hpp"

#include <gtest/gtest.h>

#include <sstream>

#include "golden.hpp"
#include "samples.hpp"

namespace vfpass::report {
namespace {

std::string writtenStatus(const std::vector<StatusEntry>& entries, const Style& style,
                          const std::vector<std::string>& notes = {},
                          const std::vector<RefusedMetadata>& refused = {},
                          const std::vector<PeerMapping>& peers = {}) {
  std::ostringstream out;
  writeStatus(out, {entries, peers, refused, notes}, style);
  return out.str();
}

std::vector<StatusEntry> statusEntries() {
  StatusEntry fine{samples::lease(), true, true, {}};
  StatusEntry drifted{samples::lease(), true, false, {"trust is on, attach set off"}};
  drifted.lease.entry = "rail1";
  drifted.lease.state = LeaseState::reserved;
  drifted.setAtStart = {"vlan 100 instead of 5", "trust off instead of on"};
  StatusEntry gone{samples::lease(), false, false, {"the domain is gone"}};
  gone.lease.domainName = "old\x1b]0;x";
  vfOf(gone.lease).infiniband = true;
  vfOf(gone.lease).settings.portGuid = Guid{0x1122334455667788};
  StatusEntry gpu{samples::functionLease(), true, true, {}, {}};
  StatusEntry blind{samples::lease(), true, true, {}, {"node-guid", "port-guid"}};
  blind.lease.entry = "rail2";
  vfOf(blind.lease).refused = {Attribute::spoofCheck, Attribute::trust};
  blind.representor = "ens1f0npf0vf0";
  blind.guestAddress = parsePciAddress("0000:07:00.0");
  return {fine, gpu, drifted, gone, blind};
}

std::vector<RefusedMetadata> refused() {
  return {{"copy\n", samples::lease().domain, "its vfpass metadata has no seal",
           "`virsh metadata 'copy' --remove`"}};
}

std::vector<PeerMapping> peers() {
  PeerMapping container{
      "train0", samples::lease().domain, VfioBackend::container, true, true, "containers map BARs",
      ""};
  PeerMapping iommufd{"old\x1b]0;x", samples::lease().domain, VfioBackend::iommufd, false,
                      false,         "iommufd maps no BARs",  "use containers"};
  PeerMapping unknown = iommufd;
  unknown.possible.reset();
  return {container, iommufd, unknown};
}

TEST(StatusReport, Text) {
  expectGolden("status.txt",
               writtenStatus(statusEntries(), {}, {"libvirt does not answer"}, refused(), peers()));
}

TEST(StatusReport, Json) {
  const std::string text = writtenStatus(statusEntries(), {.json = true},
                                         {"libvirt does not answer"}, refused(), peers());
  expectGolden("status.json", text);
  expectValid("status", text);
}

TEST(StatusReport, NoLeases) {
  EXPECT_EQ(writtenStatus({}, {}), "no leases\n");
  expectValid("status", writtenStatus({}, {.json = true}));
}

}  // namespace
}  // namespace vfpass::report
