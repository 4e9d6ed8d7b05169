#include "vfpass/report/command_reports.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "golden.hpp"

namespace vfpass::report {
namespace {

using testing::HasSubstr;
using testing::Not;

PciAddress at(const std::string& address) { return parsePciAddress(address).value(); }

BootPolicy bootPolicy() {
  BootPolicy policy;
  policy.file = "/etc/netplan/01\n.yaml";
  policy.manager = "netplan";
  policy.pf = at("0000:3b:00.0");
  policy.text = "pf: virtual-function-count: 8";
  policy.remedy = "netplan set 'ethernets.pf.virtual-function-count=null'";
  return policy;
}

ImportedVf fullVf() {
  ImportedVf vf;
  vf.name = "vf0";
  vf.device = at("0000:3b:00.2");
  vf.pf = at("0000:3b:00.0");
  vf.pfNetdev = "ens1f0np0";
  vf.interfaceForm = true;
  vf.managed = true;
  vf.settings.mac = parseMacAddress("52:54:00:00:00:01");
  vf.settings.vlan = Vlan{100, 3, VlanProtocol::dot1ad};
  vf.settings.rate = Rate{0, 1000};
  vf.settings.spoofCheck = false;
  vf.settings.trust = true;
  vf.settings.linkState = LinkState::enable;
  vf.sources[Attribute::mac] = "the domain's XML";
  vf.sources[Attribute::vlan] = "the VF table of ens1f0np0";
  vf.notes = {"The running domain does not have it yet."};
  return vf;
}

ImportReport sampleImport() {
  ImportReport report;
  report.vm = "train \"0\"\n";
  report.command = "vfpass import train0";
  report.schemaFile = "/usr/share/vfpass/mapping.schema.json";
  ImportedVf infiniband;
  infiniband.name = "1e5";
  infiniband.infiniband = true;
  infiniband.index = 3;
  infiniband.settings.nodeGuid = Guid{1};
  infiniband.settings.portGuid = Guid{2};
  infiniband.teamingWith = "null";
  ImportedMapping& mapping = report.mapping;
  mapping.vfs = {fullVf(), infiniband};
  mapping.functions = {{"gpu0", at("0000:41:00.0"), true, "A100 #1", "nvgrace_gpu_vfio_pci", {}},
                       {"disk", at("0000:42:00.0"), false, "", "", {"note"}}};
  mapping.allow = {{Allowance::trust, "vf0 is a trusted VF"}};
  mapping.nvlink = NvlinkMode::partition;
  mapping.leftOut = {{"<hostdev type='usb'>", {}, LeftOutReason::otherBus, "no\nfunction", ""},
                     {"<hostdev type='pci'>", at("0000:3b:00.0"), LeftOutReason::pf, "it is a PF",
                      "give the guest a VF"}};
  mapping.refusals = {{"VF 0 is\nin use", "stop it"}, {"a GPU is the boot display", ""}};
  mapping.unclear = {bootPolicy()};
  return report;
}

ImportHostReport hostSample() {
  ImportHostReport report{"vfpass import --host", {}};
  report.host.pfs.push_back({at("0000:3b:00.0"),
                             "ens1f0np0",
                             4,
                             "",
                             true,
                             EswitchMode::legacy,
                             LinkSettings{9000, true},
                             {bootPolicy()}});
  report.host.pfs.push_back({at("0000:5b:00.0"), "", 8, "/etc/rc.local", false, {}, {}, {}});
  report.host.unclear = {bootPolicy()};
  return report;
}

template <typename Report>
std::string writtenImport(const Report& report, const std::string& text, const std::string& file,
                          bool json) {
  std::ostringstream out;
  writeImport(out, report, text, file, {.json = json});
  return out.str();
}

TEST(ImportReport, TextHasValuesSourcesAndReasons) {
  expectGolden("import.yaml", mappingText(sampleImport()));
  expectGolden("import-host.yaml", hostText(hostSample()));
}

TEST(ImportReport, PfWithoutVfsMayGetThem) {
  ImportHostReport report = hostSample();
  report.host.pfs.back().vfCount = 0;
  EXPECT_THAT(hostText(report), Not(HasSubstr("    virtual-function-count: 0")));
}

TEST(ImportReport, NoNameCanBeginALine) {
  for (const std::string& text : {mappingText(sampleImport()), hostText(hostSample())}) {
    EXPECT_THAT(text, Not(HasSubstr("\n.yaml")));
    EXPECT_THAT(text, Not(HasSubstr("\nfunction ")));
    EXPECT_THAT(text, Not(HasSubstr("\nin use")));
  }
}

TEST(ImportReport, LinesToPasteAreLinesOfTheComment) {
  ImportReport report = sampleImport();
  const std::string remedy = "add under `gpus:`:\n  - {name: gpu1}";
  report.mapping.leftOut.front().remedy = remedy;
  report.mapping.refusals.front().remedy = remedy;
  const std::string text = mappingText(report);
  const std::string comment = "\n#     add under `gpus:`:\n#       - {name: gpu1}\n";
  EXPECT_NE(text.find(comment), text.rfind(comment)) << text;
  EXPECT_NE(text.find(comment), std::string::npos) << text;
}

TEST(ImportReport, JsonMatchesItsSchema) {
  const std::string text =
      writtenImport(sampleImport(), "version: 1\n", "/etc/vfpass/vms/a.yaml", true);
  expectValid("import", text);
  expectGolden("import.json", text);
  expectValid("import", writtenImport(ImportReport{}, "", "", true));
  expectValid("import", writtenImport(hostSample(), "version: 1\n", "", true));
}

TEST(ImportReport, TextIsWrittenAsItIs) {
  EXPECT_EQ(writtenImport(hostSample(), "text", "", false), "text");
  EXPECT_EQ(writtenImport(sampleImport(), "text", "", false), "text");
}

}  // namespace
}  // namespace vfpass::report
