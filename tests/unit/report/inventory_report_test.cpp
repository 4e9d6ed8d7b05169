#include "vfpass/report/command_reports.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "golden.hpp"
#include "hosts/topology_builder.hpp"
#include "samples.hpp"

namespace vfpass::report {
namespace {

using testing::HasSubstr;

std::string pfs(const Inventory& inventory, const Style& style,
                const std::vector<Device>& others = {}) {
  std::ostringstream out;
  writePfs(out, inventory, others, style);
  return out.str();
}

std::string vfs(const Inventory& inventory, const Style& style, const DefinedUsers& users = {}) {
  std::ostringstream out;
  writeVfs(out, inventory, {samples::lease()}, users, style);
  return out.str();
}

TEST(InventoryReport, PfText) { expectGolden("pf-list.txt", pfs(samples::inventory(), {})); }

TEST(InventoryReport, PfJson) {
  const std::string text = pfs(samples::inventory(), {.json = true});
  expectGolden("pf-list.json", text);
  expectValid("pf-list", text);
}

TEST(InventoryReport, VfText) { expectGolden("vf-list.txt", vfs(samples::inventory(), {})); }

TEST(InventoryReport, VfJson) {
  const std::string text = vfs(samples::inventory(), {.json = true});
  expectGolden("vf-list.json", text);
  expectValid("vf-list", text);
}

TEST(InventoryReport, NamesVfsInQuarantine) {
  Inventory inventory = samples::inventory();
  EXPECT_THAT(vfs(inventory, {}), testing::Not(HasSubstr("QUARANTINE")));
  const PhysicalFunction& pf = inventory.pfs.at(0);
  inventory.quarantined = {{pf.vfs.at(0).address, "its reset failed", "2026-11-28T12:00:00Z"}};
  EXPECT_THAT(vfs(inventory, {}), HasSubstr("  its reset failed\n"));
  EXPECT_THAT(vfs(inventory, {.json = true}), HasSubstr("\"quarantine\": \"its reset failed\""));
  expectValid("vf-list", vfs(inventory, {.json = true}));
  inventory.quarantined[0].device = PciAddress{0, 0x99, 0, 0};
  inventory.quarantined[0].elsewhere = {pf.address};
  EXPECT_THAT(vfs(inventory, {}), HasSubstr("  its PF: its reset failed\n"));
}

TEST(InventoryReport, EmptyHost) {
  EXPECT_EQ(pfs({}, {}), "no SR-IOV capable NIC with a driver\n");
  EXPECT_EQ(vfs({}, {}), "no VFs\n");
  expectValid("pf-list", pfs({}, {.json = true}));
  expectValid("vf-list", vfs({}, {.json = true}));
}

// A PF after a firmware error, a card with SR-IOV off in its firmware, one of another vendor, and a
// function that manages NVLink.
TEST(InventoryReport, NamesNicsThatOfferNoVfs) {
  hosts::TopologyBuilder host;
  const auto bridge = host.hostBridge("pci0000:00", 0);
  static_cast<void>(host.function(FunctionRole::nvlinkManagement, "0000:05:00.0", bridge));
  const auto off = host.pf("0000:12:00.0", "mlx5_0", bridge);
  host.topology.functions[off].totalVfs = 0;
  const auto other = host.pf("0000:13:00.0", "\x1b[2J", bridge);
  host.topology.functions[other].totalVfs = 0;
  host.topology.functions[other].vendor = 0x8086;
  host.topology.functions[other].driver = "";
  Inventory inventory;
  inventory.pfs.resize(1);
  inventory.pfs[0].address = *parsePciAddress("0000:11:00.0");
  inventory.pfs[0].driver = "mlx5_core";
  const auto& others = host.topology.functions;
  const std::string text = pfs(inventory, {}, others);
  EXPECT_THAT(text, HasSubstr("\nPF 0000:11:00.0 is bound to mlx5_core, but has neither netdev nor "
                              "RDMA device: "));
  EXPECT_THAT(text,
              HasSubstr("\nno PF: 0000:05:00.0 manages the NVLink of the GPU board, and is not a "
                        "NIC\nno PF: 0000:12:00.0 (mlx5_0) shows no SR-IOV capability; "
                        "`vfpass doctor` explains it (sriov-firmware)\n"));
  EXPECT_THAT(text, HasSubstr("\nno PF: 0000:13:00.0 (\\x1b[2J) shows no SR-IOV capability and is "
                              "bound to no driver\n"));
  const std::string json = pfs(inventory, {.json = true}, others);
  expectValid("pf-list", json);
  const auto document = nlohmann::json::parse(json);
  EXPECT_THAT(document["pfs"][0]["fault"]["remedy"].get<std::string>(),
              HasSubstr("devlink health"));
  EXPECT_EQ(document["other_nics"].size(), 3U);
  inventory.pfs[0].role = FunctionRole::nvlinkManagement;  // with SR-IOV
  EXPECT_THAT(pfs(inventory, {}),
              HasSubstr("\nPF 0000:11:00.0 manages the NVLink of the GPU board"));
}

TEST(InventoryReport, HidesValuesOfAnUnreadableVf) {
  const auto document = nlohmann::json::parse(vfs(samples::inventory(), {.json = true}));
  const auto& hidden = document["vfs"][3];
  EXPECT_FALSE(hidden["settings_readable"].get<bool>());
  EXPECT_TRUE(hidden["settings"]["mac"].is_null());
  EXPECT_TRUE(hidden["settings"]["trust"].is_null());
}

TEST(InventoryReport, MatchesLeasesByPfAndIndex) {
  Inventory moved = samples::inventory();
  moved.pfs[0].vfs[0].address.bus = 0x77;  // as after adding a card
  const auto document = nlohmann::json::parse(vfs(moved, {.json = true}));
  EXPECT_EQ(document["vfs"][0]["lease"]["entry"], "rail0");
  EXPECT_TRUE(document["vfs"][1]["lease"].is_null());
  EXPECT_TRUE(document["vfs"][4]["lease"].is_null()) << "index 0 of another PF";
}

TEST(InventoryReport, NamesUsersOfVfsOnlyIfThereAreAny) {
  const auto inventory = samples::inventory();
  const auto& vf = inventory.pfs[0].vfs[1].address;
  using Kind = DeviceUser::Kind;
  const DefinedUsers users{{{vf, Kind::domain, "hand\xff"}, {vf, Kind::pfsNetwork, "pool"}}};
  EXPECT_NE(vfs(inventory, {}, users).find("domain hand\\xff, network pool"), std::string::npos);
  EXPECT_EQ(vfs(inventory, {}, DefinedUsers{std::in_place}).find("USED BY"), std::string::npos);
  const std::string text = vfs(inventory, {.json = true}, users);
  expectValid("vf-list", text);
  const auto document = nlohmann::json::parse(text);
  EXPECT_EQ(document["vfs"][0]["used_by"], nlohmann::json::array());
  EXPECT_EQ(document["vfs"][1]["used_by"][1],
            (nlohmann::json{{"kind", "network"}, {"name", "pool"}}));
  EXPECT_TRUE(nlohmann::json::parse(vfs(inventory, {.json = true}))["vfs"][0]["used_by"].is_null());
}

TEST(InventoryReport, NamesTheNamespaceThatHasTheNetdev) {
  const auto inventory = samples::inventory();
  const auto& vf = inventory.pfs[0].vfs[1].address;
  const DefinedUsers users{{{vf, DeviceUser::Kind::elsewhere, "eth5 in network namespace blue"}}};
  EXPECT_NE(vfs(inventory, {}, users).find("netdev eth5 in network namespace blue"),
            std::string::npos);
  const std::string text = vfs(inventory, {.json = true}, users);
  expectValid("vf-list", text);
  EXPECT_EQ(nlohmann::json::parse(text)["vfs"][1]["used_by"][0]["kind"], "netdev");
}

TEST(InventoryReport, EscapesNamesThatAreNotUtf8) {
  Inventory hostile = samples::inventory();
  hostile.pfs[0].model = "\xff\xfe";
  hostile.pfs[0].netdevs = {{"\xc2\x9b[2J"}};  // C1 control sequence introducer
  EXPECT_EQ(pfs(hostile, {}).find('\xff'), std::string::npos);
  const std::string json = pfs(hostile, {.json = true});
  expectValid("pf-list", json);
  EXPECT_EQ(json.find('\xc2'), std::string::npos) << "terminals interpret U+009B";
}

}  // namespace
}  // namespace vfpass::report
