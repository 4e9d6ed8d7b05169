#include "samples.hpp"

#include "vfpass/finding.hpp"

namespace vfpass::metrics::samples {
namespace {

Uuid uuid(char last) {
  return parseUuid(std::string("8f1b3c5e-2a4d-4c6e-9f10-0123456789a") + last).value();
}

VirtualFunction vf(unsigned index) {
  VirtualFunction vf;
  vf.index = index;
  vf.address = {0, 0x3b, 0, static_cast<std::uint8_t>(index + 2)};
  vf.driver = index == 0 ? "vfio-pci" : "mlx5_core";
  vf.iommuGroup = 40 + index;
  vf.settings.mac = parseMacAddress("02:11:22:33:44:55");
  vf.settings.vlan = Vlan{100, 3, VlanProtocol::dot1q};
  vf.settingsReadable = index != 2;
  return vf;
}

PhysicalFunction ethernetPf() {
  PhysicalFunction pf;
  pf.address = {0, 0x3b, 0, 0};
  pf.serial = "MT2116X01234";
  pf.driver = "mlx5_core";
  pf.netdevs = {{"ens1f0np0"}};
  pf.rdma = {{"mlx5_0"}};
  pf.linkLayer = LinkLayer::ethernet;
  pf.numaNode = 1;
  pf.totalVfs = 8;
  pf.vfs = {vf(0), vf(1), vf(2)};
  return pf;
}

PhysicalFunction infinibandPf() {
  PhysicalFunction pf;
  pf.address = {0, 0xd8, 0, 1};
  pf.driver = "mlx5_core";
  pf.linkLayer = LinkLayer::infiniband;
  pf.totalVfs = 1;
  VirtualFunction only = vf(0);
  only.address = {0, 0xd8, 0, 2};
  only.settings = {};
  only.settings.portGuid = Guid{0x0200000000000002};
  pf.vfs = {only};
  return pf;
}

Lease lease(const char* entry, unsigned index) {
  Lease lease;
  lease.domain = uuid('b');
  lease.domainName = "train0";
  lease.entry = entry;
  lease.pf = {0, 0x3b, 0, 0};
  vfOf(lease).index = index;
  vfOf(lease).settings.mac = parseMacAddress("02:11:22:33:44:55");
  lease.device = {0, 0x3b, 0, static_cast<std::uint8_t>(index + 2)};
  lease.state = LeaseState::running;
  return lease;
}

Lease gpu() {
  Lease lease;
  lease.part = LeasedFunction{};
  lease.domain = uuid('c');
  lease.domainName = "idle0";
  lease.entry = "gpu0";
  lease.pf = lease.device = {0, 0x3a, 0, 0};
  return lease;
}

report::SavedVerification saved() {
  report::SavedVerification saved;
  saved.result = "failed";
  saved.report.time = "2026-11-21T09:40:00Z";
  saved.report.findings = {{"agent", "", Outcome::passed, "", "", ""},
                           {"counters", "rail0", Outcome::failed, "", "", "", Observer::host},
                           {"numa", "rail0", Outcome::warning, "", "", ""},
                           {"numa", "rail1", Outcome::passed, "", "", ""}};
  Figure write{"rail0", "write", "gpu", 65536, 1U << 20U, 196.5};
  write.limit = 200;
  write.gpu = "gpu0";
  Figure latency{"rail0", "send", "host", 2, 32, 0};
  latency.medianMicroseconds = 1.25;
  latency.tailMicroseconds = 2.5;
  Figure sizes = write;
  sizes.source = sizeFigures;
  saved.report.figures = {write, latency, sizes};
  return saved;
}

}  // namespace

Observation full() {
  Observation all;
  all.version = "0.1.0";
  all.collected = {{"devices", true}, {"doctor", true}, {"status", true}};
  all.libvirtUp = true;
  all.pfs = {ethernetPf(), infinibandPf()};
  all.links = {{all.pfs[0].address, 0.25}, {all.pfs[1].address, 1}};
  all.statistics[all.pfs[0].address] = {
      {0, {{"rx_bytes", 18446744073709551615U}, {"tx_packets", 7}}},
      {1, {{"rx_bytes", 0}, {"tx_packets", 0}}}};
  all.leases = {gpu(), lease("rail0", 0), lease("rail1", 1)};
  all.leases->front().state = LeaseState::reserved;
  all.entries = {{{gpu(), true, false, {}},
                  {lease("rail0", 0), true, true, {"trust is on", "mapping: vlan"}},
                  {lease("rail1", 1), true, true, {}, {"rate"}}}};
  all.refused = {{"copy", uuid('d'), "no seal", "detach"}};
  all.mappings = {{"later0", false}, {"train0", true}};
  all.configurationProblems = 2;
  all.openOperations = 1;
  all.quarantined = {{{PciAddress{0, 0x3b, 0, 4}, "its reset failed", "2026-11-28T12:00:00Z"}}};
  all.diagnoses = {{{"iommu", "", Outcome::passed, "", "", ""}, ""},
                   {{"link", "mlx5_0", Outcome::failed, "", "", ""}, ""},
                   {{"acs", "0000:3a:00.0", Outcome::warning, "", "", ""}, ""},
                   {{"ats", "mlx5_0", Outcome::notObservable, "", "", ""}, ""},
                   {{"hook", "", Outcome::failed, "", "", ""}, "", Acceptance{"r", "2027-01-31"}}};
  all.verifications = {{"idle0", uuid('c'), true, false, {}},
                       {"train0", uuid('b'), false, true, saved()}};
  return all;
}

Observation bare() {
  Observation none;
  none.version = "0.1.0";
  none.collected = {{"devices", true}, {"leases", false}};
  none.libvirtUp = false;
  return none;
}

Observation hostile() {
  const std::string name = "a\"b\\c\nd\x1b\xff{}\xc3\xa4";
  Observation all = full();
  all.pfs[0].netdevs = {{name}};
  all.pfs[0].serial = std::string(255, 'x') + "\xc3\xa4";
  all.leases->back().domainName = name;
  all.mappings = {{name, true}};
  all.quarantined->front().reason = name;
  all.diagnoses->push_back({{"link", name, Outcome::failed, "", "", ""}, ""});
  all.diagnoses->push_back(all.diagnoses->back());  // one series, not two
  Verification& last = all.verifications.back();
  last.domainName = name;
  last.saved->result = name;
  last.saved->report.time = name;
  for (Figure& figure : last.saved->report.figures) {
    figure.gpu = name;
    figure.gigabitsPerSecond = 1e308;
  }
  for (std::size_t i = 0; i < 2 * mostFigures; ++i) {
    last.saved->report.figures.push_back(last.saved->report.figures.front());
    last.saved->report.figures.back().messageBytes = i;
  }
  return all;
}

}  // namespace vfpass::metrics::samples
