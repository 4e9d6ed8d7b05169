#include <gtest/gtest.h>

#include <sstream>

#include "golden.hpp"
#include "samples.hpp"
#include "vfpass/report/command_reports.hpp"
#include "vfpass/report/result_report.hpp"

namespace vfpass::report {
namespace {

std::string writtenHost(const std::vector<HostEntry>& entries, const Style& style) {
  std::ostringstream out;
  writeHost(out, {entries, {}}, style);
  return out.str();
}

std::vector<HostEntry> hostEntries() {
  HostEntry managed{"0000:3b:00.0", "ens1f0np0", true, {}, {}, {}};
  managed.steps = {{SetMtu{{0, 0x3b, 0, 0}, 9000}, {}, "host.yaml asks for it", false},
                   {SetLinkUp{{0, 0x3b, 0, 0}, false}, {}, "netdev ens1f0np0 is up", true}};
  managed.settings = {{"virtual-function-count", "8", "8"},
                      {"embedded-switch-mode", "switchdev", "legacy"},
                      {"mtu", "9000", std::nullopt},
                      {"up", std::nullopt, "yes"}};
  HostEntry missing{"netdev ens9", "", true, {}, {}, {"host.yaml:4:5: no PF netdev ens9\x1b[2J"}};
  return {managed, missing};
}

TEST(HostReport, Text) { expectGolden("host.txt", writtenHost(hostEntries(), {})); }

TEST(HostReport, Json) {
  const std::string text = writtenHost(hostEntries(), {.json = true});
  expectGolden("host.json", text);
  expectValid("host", text);
}

TEST(HostReport, EntryWithPendingStepsIsPending) {
  HostEntry entry;
  EXPECT_FALSE(entry.pending());
  entry.differs = true;
  EXPECT_TRUE(entry.pending());
}

TEST(HostReport, UnobservableValueDiffers) {
  EXPECT_TRUE((HostSetting{"mtu", "9000", std::nullopt}.differs()));
  EXPECT_FALSE((HostSetting{"mtu", std::nullopt, "1500"}.differs()));
  EXPECT_FALSE((HostSetting{"mtu", "1500", "1500"}.differs()));
}

TEST(HostReport, ShowsTheMemoryCheckThatIsWantedOrOn) {
  const auto written = [](const MemoryCheckEntry& entry, const Style& style) {
    std::ostringstream out;
    writeHost(out, {{}, {}, entry}, style);
    return out.str();
  };
  const auto has = [&](const MemoryCheckEntry& entry, const std::string& text) {
    return written(entry, {}).find(text) != std::string::npos;
  };
  EXPECT_FALSE(has({false, false}, "gpu-memory-check"));
  EXPECT_FALSE(has({false, std::nullopt}, "gpu-memory-check"));
  EXPECT_TRUE(has({true, true}, "matches"));
  EXPECT_TRUE(has({true, false}, "differs"));
  EXPECT_TRUE(has({false, true}, "differs"));
  EXPECT_TRUE(has({true, std::nullopt}, "?"));
  EXPECT_FALSE((MemoryCheckEntry{true, std::nullopt}.differs())) << "nobody knows";
  const std::string json = written({true, std::nullopt}, {.json = true});
  EXPECT_NE(json.find("\"found\": null"), std::string::npos);
  expectValid("host", json);
  expectValid("host", written({true, false}, {.json = true}));
}

std::string withLinks(const Style& style) {
  const std::vector<SoftRoceEntry> links{
      {"rxe0", "eth0", "eth0", true, {}, {}},
      {"rxe1", "eth1", std::nullopt, false, {{AddSoftRoceLink{"rxe1", "eth1"}, {}, ""}}, {}},
      {"rxe2", std::nullopt, "eth2", true, {}, {"process 7 (a\x1b[2J) uses it"}},
      {"other0", std::nullopt, "eth3", false, {}, {}}};
  std::ostringstream out;
  writeHost(out, {{}, links}, style);
  return out.str();
}

TEST(HostReport, SoftRoceText) { expectGolden("soft-roce.txt", withLinks({})); }

TEST(HostReport, SoftRoceJson) {
  const std::string text = withLinks({.json = true});
  expectGolden("soft-roce.json", text);
  expectValid("host", text);
}

TEST(HostReport, LinkOfOthersIsNotPending) {
  EXPECT_FALSE((SoftRoceEntry{"rxe0", std::nullopt, "eth0", false, {}, {}}.pending()));
  EXPECT_TRUE((SoftRoceEntry{"rxe0", std::nullopt, "eth0", true, {}, {}}.pending()));
  EXPECT_TRUE((SoftRoceEntry{"rxe0", "eth1", "eth0", false, {}, {}}.pending()));
}

TEST(HostReport, NoPfs) {
  EXPECT_EQ(writtenHost({}, {}), "no PFs on this host or in host.yaml\n");
  expectValid("host", writtenHost({}, {.json = true}));
}

// The commands write those to standard error.
TEST(HostReport, TextHasNoFailures) {
  EXPECT_EQ(writtenHost({{"pci 0000:01:00.0", "", true, {}, {}, {"no such PF"}}}, {}), "");
}

TEST(ActionsReport, TextAndJson) {
  std::ostringstream text;
  writeActions(text, {"made /etc/x\n"}, {});
  EXPECT_EQ(text.str(), "made /etc/x\\x0a\n");
  std::ostringstream json;
  writeActions(json, {"made /etc/x"}, {.json = true});
  expectValid("actions", json.str());
}

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
