#include "vfpass/report/command_reports.hpp"

#include <sstream>

#include "golden.hpp"
#include "samples.hpp"

namespace vfpass::report {
namespace {

Lease infinibandLease(const std::string& domain, std::uint64_t number) {
  Lease lease = samples::lease();
  lease.domainName = domain;
  lease.device.function = static_cast<std::uint8_t>(number);
  vfOf(lease).infiniband = true;
  vfOf(lease).settings = {};
  vfOf(lease).settings.nodeGuid = Guid{0x0200000000000000 + number};
  vfOf(lease).settings.portGuid = Guid{0x0200000000000100 + number};
  return lease;
}

GuidList guidList() {
  GuidList list{"host1", {infinibandLease("train0", 2), infinibandLease("a,\"b\"\n", 3)}, 0x1234};
  vfOf(list.leases[1]).settings.nodeGuid.reset();
  return list;
}

std::string writtenGuids(const GuidList& list, GuidFormat format, const Style& style = {}) {
  std::ostringstream out;
  writeGuids(out, list, format, style);
  return out.str();
}

TEST(GuidsReport, HasATableRulesAndCsv) {
  expectGolden("guids.txt", writtenGuids(guidList(), GuidFormat::table));
  expectGolden("guids.conf", writtenGuids(guidList(), GuidFormat::opensm));
  expectGolden("guids.csv", writtenGuids(guidList(), GuidFormat::csv));
}

TEST(GuidsReport, JsonMatchesItsSchema) {
  const std::string text = writtenGuids(guidList(), GuidFormat::csv, {.json = true});
  expectValid("guids", text);
  expectGolden("guids.json", text);
  expectValid("guids", writtenGuids({"host1", {}, {}}, GuidFormat::table, {.json = true}));
}

TEST(GuidsReport, WithoutLeasesOnlyTheTableSaysSo) {
  EXPECT_EQ(writtenGuids({"h", {}, 1}, GuidFormat::table),
            "no leased InfiniBand VF has a port GUID\n");
  EXPECT_EQ(writtenGuids({"h", {}, 1}, GuidFormat::csv),
            "host,domain,entry,vf,node_guid,port_guid,p_key\n");
  EXPECT_EQ(writtenGuids({"h", {}, 1}, GuidFormat::opensm),
            "# vfpass host guids: InfiniBand VFs leased on h\n");
}

// OpenSM reads at most 4,095 bytes as one line.
TEST(GuidsReport, NoNameMakesALineThatOpenSmSplits) {
  GuidList list{std::string(9000, '\1'), {infinibandLease(std::string(9000, '\1'), 2)}, 1};
  list.leases.front().entry = std::string(9000, '\1');
  std::istringstream lines(writtenGuids(list, GuidFormat::opensm));
  for (std::string line; std::getline(lines, line);) {
    EXPECT_LT(line.size(), 4095U);
  }
}

}  // namespace
}  // namespace vfpass::report
