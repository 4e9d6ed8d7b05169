#include "vfpass/report/topology_report.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <pugixml.hpp>
#include <sstream>

#include "golden.hpp"
#include "markup.hpp"
#include "topology_sample.hpp"
#include "vfpass/error.hpp"
#include "vfpass/report/command_reports.hpp"
#include "vfpass/report/result_report.hpp"
#include "vfpass/topology/distance.hpp"

namespace vfpass::report {
namespace {

using testing::HasSubstr;
using testing::Not;

template <typename Write>
std::string outputOf(Write write) {
  std::ostringstream out;
  write(out);
  return out.str();
}

std::string svgOf(const TopologyReport& report) {
  return outputOf([&](auto& out) { writeTopologySvg(out, report); });
}

TEST(TopologyReport, Matrix) {
  expectGolden("topo-matrix.txt",
               outputOf([](auto& out) { writeTopologyMatrix(out, samples::topology(), {}); }));
}

TEST(TopologyReport, Tree) {
  expectGolden("topo-tree.txt",
               outputOf([](auto& out) { writeTopologyTree(out, samples::topology(), {}); }));
}

TEST(TopologyReport, Json) {
  const auto text = outputOf([](auto& out) { writeTopologyJson(out, samples::topology()); });
  expectGolden("topo.json", text);
  expectValid("topo", text);
}

// The picture in the README.
TEST(TopologyReport, Svg) {
  expectGolden("../../../../docs/topology.svg", svgOf(samples::topology()));
}

TEST(TopologyReport, PictureNumbersVfsAndExplainsItsMarks) {
  TopologyReport report = samples::topology();
  const std::string plain = svgOf(report);
  EXPECT_THAT(plain, HasSubstr("another PF that is as near to the GPU"));
  EXPECT_THAT(plain, HasSubstr(">3</text>"));
  EXPECT_THAT(plain, Not(HasSubstr("▲")));
  for (Device& function : report.topology.functions) {
    function.best =
        function.role == FunctionRole::upstreamPort ? PcieLink{16000, 16} : function.best;
  }
  report.origin = "host <gpu01>, 2026-11-28";
  const std::string marked = svgOf(report);
  EXPECT_THAT(marked, HasSubstr(">▲ Gen4 x16</text>"));
  EXPECT_THAT(marked, HasSubstr("the uplink of a switch that is slower than a link below it"));
  EXPECT_THAT(marked, HasSubstr("host &lt;gpu01&gt;, 2026-11-28"));
}

// Every line of the legend is inside the picture.
TEST(TopologyReport, PictureIsHighEnoughForItsLegend) {
  pugi::xml_document document;
  ASSERT_TRUE(document.load_string(svgOf(samples::topology()).c_str()));
  const pugi::xml_node picture = document.child("svg");
  for (const pugi::xml_node text : picture.children("text")) {
    EXPECT_LT(text.attribute("y").as_int(), picture.attribute("height").as_int())
        << text.text().get();
  }
}

// The ConnectX functions of an HGX B200 board.
TEST(TopologyReport, NvlinkManagementIsNoNic) {
  TopologyReport report = samples::topology();
  Device* nic = nullptr;
  for (Device& function : report.topology.functions) {
    nic = isPf(function) ? &function : nic;
  }
  ASSERT_NE(nic, nullptr);
  nic->role = FunctionRole::nvlinkManagement;
  const std::string name = nic->rdmaDevice();
  const std::string address = toString(nic->address);
  const auto matrix = outputOf([&](auto& out) { writeTopologyMatrix(out, report, {}); });
  EXPECT_THAT(matrix, HasSubstr("\nNVLink management of the GPU board, no NICs: " + name + " (" +
                                address + ")\n"));
  EXPECT_THAT(matrix, Not(HasSubstr(name + "  "))) << "neither PF nor rail";
  EXPECT_THAT(outputOf([&](auto& out) { writeTopologyTree(out, report, {}); }),
              HasSubstr(name + "  " + address + "  NVLink management"));
  EXPECT_THAT(svgOf(report), HasSubstr("NVLink mgmt"));
  const auto json = outputOf([&](auto& out) { writeTopologyJson(out, report); });
  expectValid("topo", json);
  EXPECT_THAT(json, HasSubstr("\"nvlink-management\""));
}

TEST(TopologyReport, EscapesUntrustedTextInThePicture) {
  const std::string text = svgOf(samples::hostileTopology());
  pugi::xml_document document;
  EXPECT_TRUE(document.load_string(text.c_str()));
  EXPECT_THAT(text, Not(HasSubstr("<script")));
  EXPECT_THAT(text, Not(HasSubstr("\x1b")));
  EXPECT_THAT(text, Not(HasSubstr("\xff")));
}

TEST(TopologyReport, EscapesUntrustedTextInOtherFormats) {
  const TopologyReport report = samples::hostileTopology();
  const auto tree = outputOf([&](auto& out) { writeTopologyTree(out, report, {}); });
  const auto matrix = outputOf([&](auto& out) { writeTopologyMatrix(out, report, {}); });
  EXPECT_THAT(tree + matrix, Not(HasSubstr("\x1b")));
  expectValid("topo", outputOf([&](auto& out) { writeTopologyJson(out, report); }));
  const auto nccl = outputOf([&](auto& out) { writeNcclTopology(out, report.topology); });
  EXPECT_THAT(nccl, HasSubstr("vendor=\"/textscript2J\""));
}

TEST(XmlText, HasOnlyCharactersOfXml) {
  EXPECT_EQ(xmlText("\x1b[2J\xff<&>"), "\\x1b[2J\\xff<&>");
  EXPECT_EQ(xmlText("\xef\xbf\xbe \xef\xbf\xbf\xef\xbf\xbf"), "? ??");
  EXPECT_EQ(xmlText("\xef\xbf\xbd"), "\xef\xbf\xbd") << "U+FFFD is a character";
}

TEST(SvgWriter, EscapesXmlSpecialCharacters) {
  pugi::xml_document document;
  SvgWriter(document).text({1, 2}, "name", "<a href='x'>&\"</a>");
  EXPECT_EQ(outputOf([&](auto& out) { writeSvg(out, document); }),
            "<text class=\"name\" x=\"1\" y=\"2\">&lt;a href='x'&gt;&amp;\"&lt;/a&gt;</text>\n");
}

TEST(Fitted, CutsAtCharacters) {
  EXPECT_EQ(fitted("abcdef", 4), "abc…");
  EXPECT_EQ(fitted("äöüß", 4), "äöüß");
  EXPECT_EQ(fitted("äöüßx", 4), "äöü…");
}

TEST(NcclTopology, DescribesTheHost) {
  const auto text =
      outputOf([](auto& out) { writeNcclTopology(out, samples::topology().topology); });
  expectGolden("nccl-host.xml", text);
  EXPECT_THAT(text, HasSubstr("familyid=\"175\"")) << "NCCL's number for AMD's family 25";
}

TEST(NcclTopology, DescribesAGuest) {
  const TopologyReport report = samples::topology();
  std::vector<GuestDevice> devices;
  for (const Lease& lease : report.leases) {
    const auto* function = findFunction(report.topology, lease.device);
    if (lease.domainName == "train0") {
      devices.push_back({static_cast<std::size_t>(function - report.topology.functions.data()),
                         lease.guest.address});
    }
  }
  expectGolden("nccl-guest.xml",
               outputOf([&](auto& out) { writeGuestNcclTopology(out, report.topology, devices); }));
}

// With `scripts/check-nccl-topology tests/unit/report/golden/guest`, NCCL itself reads these two
// files: the topology of the guest, and the distances on the host at the guest addresses.
TEST(NcclTopology, DescribesAGuestWithDevicesOfBothNodes) {
  const Topology topology = samples::topology().topology;
  std::vector<GuestDevice> devices;
  for (const char* address : {"0000:03:00.0", "0000:04:00.0", "0000:81:00.0", "0000:05:00.1",
                              "0000:06:00.2", "0000:82:00.0"}) {
    const auto* function = findFunction(topology, parsePciAddress(address).value());
    const auto bus = static_cast<std::uint8_t>(0x11 + devices.size());
    devices.push_back(
        {static_cast<std::size_t>(function - topology.functions.data()), PciAddress{0, bus, 0, 0}});
  }
  expectGolden("guest/nccl.xml",
               outputOf([&](auto& out) { writeGuestNcclTopology(out, topology, devices); }));
  auto document = nlohmann::ordered_json::object();
  for (const auto& gpu : devices) {
    for (const auto& nic : devices) {
      if (topology.functions[gpu.function].role == FunctionRole::gpu &&
          topology.functions[nic.function].role == FunctionRole::nic) {
        document["distances"].push_back(
            {{"gpu", toString(gpu.address)},
             {"pf", toString(nic.address)},
             {"distance", toString(topology::distance(topology, gpu.function, nic.function))}});
      }
    }
  }
  expectGolden("guest/topo.json", document.dump(2) + "\n");
}

TEST(NcclTopology, FollowsTheSyntaxOfNcclsParser) {
  const auto text =
      outputOf([](auto& out) { writeNcclTopology(out, samples::topology().topology); });
  EXPECT_TRUE(text.starts_with("<system version=\"1\">\n"));
  EXPECT_THAT(text, Not(HasSubstr("\t")));
  EXPECT_THAT(text, Not(HasSubstr("<?xml")));
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const std::string tag = line.substr(line.find('<'));
    EXPECT_EQ(tag.find("  "), std::string::npos) << line;
    EXPECT_TRUE(tag.ends_with('>')) << line;
    EXPECT_FALSE(tag.ends_with(" />")) << line;
  }
}

TEST(NcclTopology, RefusesMoreNodesThanNcclReads) {
  TopologyReport report = samples::topology();
  const Device gpu = *findFunction(report.topology, {0, 0x81, 0, 0});
  for (unsigned i = 0; i < 256; ++i) {
    report.topology.functions.push_back(gpu);
    report.topology.functions.back().address = {1, static_cast<std::uint8_t>(i), 0, 0};
  }
  std::ostringstream out;
  EXPECT_THROW(writeNcclTopology(out, report.topology), Error);
}

TEST(ProposalReport, MappingAndJson) {
  ProposalReport report;
  const TopologyReport sample = samples::topology();
  report.vm = "it's \"me\"";
  report.command = "vfpass init ...";
  report.schemaFile = "/usr/share/vfpass/mapping.schema.json";
  report.topology = sample.topology;
  report.proposal = topology::propose(sample.topology, sample.leases, {2, 3});
  expectGolden("init.yaml", outputOf([&](auto& out) { writeProposal(out, report, {}); }));
  const auto json =
      outputOf([&](auto& out) { writeProposal(out, report, {.json = true, .color = false}); });
  expectGolden("init.json", json);
  expectValid("init", json);
}

TEST(SnapshotReport, TextAndJson) {
  SnapshotReport report{"/tmp/a host", {{"class", 12}, {"uevent", 30}}, 40, 12, 2049};
  EXPECT_EQ(outputOf([&](auto& out) { writeSnapshot(out, report, {}); }),
            "  class 12\n  uevent 30\n"
            "/tmp/a host: 42 files, 40 links, 12 PCI devices, 3 KiB; read it with "
            "`vfpass --sysroot '/tmp/a host' doctor`\n");
  report.target = "/tmp/a host.tar";
  EXPECT_THAT(outputOf([&](auto& out) { writeSnapshot(out, report, {}); }),
              testing::EndsWith("`mkdir 'a host' && tar -C 'a host' -xf '/tmp/a host.tar' && "
                                "vfpass --sysroot 'a host' doctor`\n"));
  expectValid("snapshot", outputOf([&](auto& out) {
                writeSnapshot(out, report, {.json = true, .color = false});
              }));
}

}  // namespace
}  // namespace vfpass::report
