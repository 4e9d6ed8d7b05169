#include "vfpass/setup/setup_plan.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>

#include "vfpass/error.hpp"
#include "vfpass/setup/setup_apply.hpp"

namespace vfpass::setup {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

constexpr const char* header =
    "# Written by `vfpass guest-setup` on the host; --undo removes it.\n";

WantedPort port(const std::string& entry, const std::string& mac, const std::string& address) {
  return {entry, false, mac, "", false, {address, 9000}};
}

SetupNetdev netdev(const std::string& name, const std::string& address) {
  return {name, address, "0000:01:00.0", {1500, false, {}, 0, 0}};
}

class SetupPlanTest : public testing::Test {
 protected:
  SetupPlanTest() {
    desired.domain = *parseUuid("4dea22b3-1d52-d8f3-2516-782e98ab3fa0");
    desired.ports = {port("rail0", "52:54:00:00:00:01", "192.168.100.10/24")};
    view.tools = {"ip"};
    view.running = {"systemd"};
    view.netdevs = {netdev("ens7", "52:54:00:00:00:01")};
  }

  [[nodiscard]] SetupPlan plan() const { return planSetup(desired, view, record); }

  std::string fileOf(const SetupPlan& made, const std::string& path) {
    const auto found = std::find_if(made.files.begin(), made.files.end(),
                                    [&](const SetupFile& each) { return each.path == path; });
    return found == made.files.end() ? "no " + path : found->after.content;
  }

  unsigned modeOf(const SetupPlan& made, const std::string& path) {
    const auto found = std::find_if(made.files.begin(), made.files.end(),
                                    [&](const SetupFile& each) { return each.path == path; });
    return found == made.files.end() ? 0 : found->after.mode;
  }

  // Updates view and record as if the plan had been applied.
  void apply(const SetupPlan& made) {
    for (const SetupFile& file : made.files) {
      view.files[file.path] = file.after;
    }
    for (const SetupPort& changed : made.ports) {
      for (SetupNetdev& each : view.netdevs) {
        if (each.name == changed.netdev) {
          each.state = changed.after;
          each.name = changed.rename.empty() ? each.name : changed.rename;
        }
      }
    }
    view.peerMemoryLoaded =
        (view.peerMemoryLoaded || made.loadPeerMemory) && !made.unloadPeerMemory;
    record = decodeRecord(encodeRecord(made.record));
  }

  DesiredSetup desired;
  SetupView view;
  SetupRecord record;
};

TEST_F(SetupPlanTest, NetplanMatchesByMac) {
  view.tools.insert("netplan");
  view.running.insert("systemd-networkd");
  view.netplanFolder = true;
  desired.ports.push_back(port("rail1", "52:54:00:00:00:02", "fd00::1/64"));
  desired.ports[1].network.mtu.reset();
  view.netdevs.push_back(netdev("ens8", "52:54:00:00:00:02"));
  const SetupPlan made = plan();
  EXPECT_EQ(made.tool, "netplan");
  EXPECT_EQ(fileOf(made, "/etc/netplan/90-vfpass.yaml"), std::string(header) +
                                                             R"(network:
  version: 2
  ethernets:
    vfpass-rail0:
      match: {macaddress: "52:54:00:00:00:01"}
      set-name: ens7
      renderer: networkd
      optional: true
      dhcp4: false
      dhcp6: false
      addresses: ["192.168.100.10/24"]
      mtu: 9000
    vfpass-rail1:
      match: {macaddress: "52:54:00:00:00:02"}
      set-name: ens8
      renderer: networkd
      optional: true
      dhcp4: false
      dhcp6: false
      addresses: ["fd00::1/64"]
)");
  EXPECT_EQ(modeOf(made, "/etc/netplan/90-vfpass.yaml"), 0600U);
  EXPECT_TRUE(made.ports[0].byTool);
}

TEST_F(SetupPlanTest, NetplanFileStaysYamlWhateverTheInterfaceName) {
  view.tools.insert("netplan");
  view.running.insert("systemd-networkd");
  view.netplanFolder = true;
  for (const char* name : {"a: b", "null", "x #y", "&z", "\"q"}) {
    view.netdevs[0].name = name;
    const YAML::Node file = YAML::Load(fileOf(plan(), "/etc/netplan/90-vfpass.yaml"));
    const YAML::Node entry = file["network"]["ethernets"]["vfpass-rail0"];
    EXPECT_EQ(entry["set-name"].as<std::string>(), name);
    EXPECT_EQ(entry["renderer"].as<std::string>(), "networkd");
  }
}

// `netplan status` starts systemd-networkd, also in a guest that uses NetworkManager.
TEST_F(SetupPlanTest, NetplanKeepsRendererWhenOtherOneStarts) {
  view.tools.insert("netplan");
  view.running.insert("NetworkManager");
  view.netplanFolder = true;
  const SetupPlan made = plan();
  EXPECT_THAT(fileOf(made, "/etc/netplan/90-vfpass.yaml"), HasSubstr("renderer: NetworkManager\n"));
  apply(made);
  view.running.insert("systemd-networkd");
  EXPECT_TRUE(plan().empty());
}

TEST_F(SetupPlanTest, IfupdownBringsInterfacesUpByName) {
  view.tools.insert("ifup");
  view.running.insert("networking");
  view.interfacesFolder = true;
  desired.ports.push_back(port("rail1", "52:54:00:00:00:02", "fd00::1/64"));
  desired.ports[1].network.mtu.reset();
  desired.ports.push_back(port("rail2", "52:54:00:00:00:03", ""));
  desired.ports[2].network.address.reset();
  view.netdevs.push_back(netdev("ens8", "52:54:00:00:00:02"));
  view.netdevs.push_back(netdev("ens9", "52:54:00:00:00:03"));
  const SetupPlan made = plan();
  EXPECT_EQ(made.tool, "ifupdown");
  EXPECT_EQ(fileOf(made, "/etc/network/interfaces.d/vfpass"), std::string(header) + R"(
# rail0
allow-hotplug ens7
iface ens7 inet static
    address 192.168.100.10/24
    mtu 9000

# rail1
allow-hotplug ens8
iface ens8 inet6 static
    address fd00::1/64
    dad-attempts 0

# rail2
allow-hotplug ens9
iface ens9 inet manual
    mtu 9000
)");
  EXPECT_TRUE(made.ports[0].byTool);
  apply(made);
  EXPECT_TRUE(plan().empty());
}

TEST_F(SetupPlanTest, IfupdownSetsInfinibandToDatagramMode) {
  view.tools.insert("ifup");
  view.running.insert("networking");
  view.interfacesFolder = true;
  view.netdevs = {netdev("ibs7", "00:00:10:49:fe:80:00:00:00:00:00:00:02:00:5e:00:53:00:00:01")};
  desired.ports = {{"rail0", true, "02:00:5e:00:53:00:00:01", "", false, {"10.0.0.1/24", {}}}};
  EXPECT_EQ(fileOf(plan(), "/etc/network/interfaces.d/vfpass"), std::string(header) + R"(
# rail0
allow-hotplug ibs7
iface ibs7 inet static
    address 10.0.0.1/24
    pre-up echo datagram >/sys/class/net/$IFACE/mode
)");
}

// ifupdown would not read the file, so vfpass's own unit sets the addresses.
TEST_F(SetupPlanTest, UsesUnitWhenIfupdownReadsNoInterfacesDirectory) {
  view.tools.insert("ifup");
  view.running.insert("networking");
  const SetupPlan made = plan();
  EXPECT_EQ(made.tool, "ip");
  EXPECT_THAT(fileOf(made, "/etc/vfpass/guest-network.conf"), HasSubstr("192.168.100.10/24"));
}

TEST_F(SetupPlanTest, NetplanMatchesInfinibandByName) {
  view.tools.insert("netplan");
  view.running.insert("NetworkManager");
  view.netplanFolder = true;
  view.netdevs = {netdev("ibs7", "00:00:10:49:fe:80:00:00:00:00:00:00:02:00:5e:00:53:00:00:01")};
  desired.ports = {{"rail0", true, "02:00:5e:00:53:00:00:01", "", false, {"10.0.0.1/24", {}}}};
  EXPECT_THAT(fileOf(plan(), "/etc/netplan/90-vfpass.yaml"),
              HasSubstr("    ibs7:\n      infiniband-mode: datagram\n"
                        "      renderer: NetworkManager\n"));
}

TEST_F(SetupPlanTest, IgnoresNetplanWithoutRenderer) {
  view.tools.insert("netplan");
  view.netplanFolder = true;
  EXPECT_EQ(plan().tool, "ip");
}

TEST_F(SetupPlanTest, WritesNetworkManagerConnectionForEachPort) {
  view.running.insert("NetworkManager");
  const SetupPlan made = plan();
  EXPECT_EQ(made.tool, "NetworkManager");
  const std::string path = "/etc/NetworkManager/system-connections/vfpass-rail0.nmconnection";
  EXPECT_EQ(fileOf(made, path), std::string(header) + R"([connection]
id=vfpass-rail0
uuid=9b2fec05-cfce-8eaf-b196-a19da0925613
type=ethernet
autoconnect-priority=100

[ethernet]
mac-address=52:54:00:00:00:01
mtu=9000

[ipv4]
method=manual
address1=192.168.100.10/24
never-default=true

[ipv6]
method=link-local
)");
  EXPECT_EQ(modeOf(made, path), 0600U);
}

TEST_F(SetupPlanTest, WritesFullInfinibandAddressForNetworkManager) {
  view.running.insert("NetworkManager");
  const std::string hardware = "00:00:10:49:fe:80:00:00:00:00:00:00:02:00:5e:00:53:00:00:01";
  view.netdevs = {netdev("ibs7", hardware)};
  desired.ports = {{"rail0", true, "02:00:5e:00:53:00:00:01", "", false, {"fd00::1/64", 4092}}};
  const std::string text =
      fileOf(plan(), "/etc/NetworkManager/system-connections/vfpass-rail0.nmconnection");
  EXPECT_THAT(text, HasSubstr("type=infiniband\n"));
  EXPECT_THAT(text, HasSubstr("[infiniband]\nmac-address=" + hardware +
                              "\nmtu=4092\ntransport-mode=datagram\n"));
  EXPECT_THAT(text, HasSubstr("[ipv4]\nmethod=disabled\n\n[ipv6]\nmethod=manual\n"
                              "address1=fd00::1/64\n"));
}

TEST_F(SetupPlanTest, WritesNetworkdFileForEachPort) {
  view.tools.insert("networkctl");
  view.running.insert("systemd-networkd");
  const SetupPlan made = plan();
  EXPECT_EQ(made.tool, "systemd-networkd");
  EXPECT_EQ(fileOf(made, "/etc/systemd/network/10-vfpass-rail0.network"),
            std::string(header) + R"([Match]
MACAddress=52:54:00:00:00:01
Type=ether

[Link]
RequiredForOnline=no
MTUBytes=9000

[Network]
DHCP=no
ConfigureWithoutCarrier=yes
Address=192.168.100.10/24
)");
}

TEST_F(SetupPlanTest, NetworkdMatchesInfinibandByName) {
  view.tools.insert("networkctl");
  view.running.insert("systemd-networkd");
  view.netdevs = {netdev("ibs7", "00:00:10:49:fe:80:00:00:00:00:00:00:02:00:5e:00:53:00:00:01")};
  desired.ports = {{"rail0", true, "02:00:5e:00:53:00:00:01", "", false, {"10.0.0.1/24", {}}}};
  const SetupPlan made = plan();
  EXPECT_THAT(fileOf(made, "/etc/systemd/network/10-vfpass-rail0.network"),
              HasSubstr("[Match]\nName=ibs7\n"));
  EXPECT_THAT(made.notes, Contains(HasSubstr("by name")));
}

TEST_F(SetupPlanTest, UsesUnitWithScriptWithoutNetworkManager) {
  const SetupPlan made = plan();
  EXPECT_EQ(made.tool, "ip");
  EXPECT_EQ(fileOf(made, "/etc/vfpass/guest-network.conf"),
            std::string(header) +
                "# hardware address, MTU, address; - for none\n"
                "52:54:00:00:00:01 9000 192.168.100.10/24\n");
  EXPECT_EQ(modeOf(made, "/etc/vfpass/guest-network.sh"), 0755U);
  EXPECT_THAT(fileOf(made, "/etc/systemd/system/vfpass-guest-network.service"),
              HasSubstr("ExecStart=/bin/sh /etc/vfpass/guest-network.sh\n"));
  ASSERT_EQ(made.ports.size(), 1U);
  EXPECT_FALSE(made.ports[0].byTool);
  EXPECT_THAT(describeChanges(made.ports[0]),
              ElementsAre("mtu 1500 -> 9000", "address +192.168.100.10/24", "up"));
}

TEST_F(SetupPlanTest, NotesThatSettingsAreLostWithoutSystemd) {
  view.running.clear();
  const SetupPlan made = plan();
  EXPECT_THAT(made.files, IsEmpty());
  EXPECT_EQ(made.ports.size(), 1U);
  EXPECT_THAT(made.notes, Contains(HasSubstr("are lost at its next boot")));
}

TEST_F(SetupPlanTest, SetsArpOnlyForSeveralEthernetPorts) {
  EXPECT_THAT(fileOf(plan(), "/etc/sysctl.d/90-vfpass.conf"), HasSubstr("no /etc"));
  desired.ports.push_back(port("rail1", "52:54:00:00:00:02", "192.168.200.10/24"));
  view.netdevs.push_back(netdev("ens8.1", "52:54:00:00:00:02"));
  const SetupPlan made = plan();
  EXPECT_THAT(fileOf(made, "/etc/sysctl.d/90-vfpass.conf"),
              HasSubstr("net/ipv4/conf/ens7/arp_announce = 2\n"
                        "net/ipv4/conf/ens7/arp_ignore = 1\n"
                        "net/ipv4/conf/ens8.1/arp_announce = 2\n"
                        "net/ipv4/conf/ens8.1/arp_ignore = 1\n"));
  ASSERT_EQ(made.ports.size(), 2U);
  EXPECT_THAT(describeChanges(made.ports[1]),
              ElementsAre("mtu 1500 -> 9000", "address +192.168.200.10/24", "up",
                          "arp_announce 0 -> 2", "arp_ignore 0 -> 1"));
}

TEST_F(SetupPlanTest, HasNothingToDoAfterApplying) {
  for (const std::set<std::string>& running : {std::set<std::string>{},
                                               {"systemd"},
                                               {"systemd", "NetworkManager"},
                                               {"systemd", "systemd-networkd"}}) {
    view.running = running;
    view.tools = {"ip", "networkctl"};
    desired.nccl.gidIndex = 3;
    apply(plan());
    EXPECT_TRUE(plan().empty());
    apply(planUndo(view, record));
    record = {};
  }
}

TEST_F(SetupPlanTest, ChangedMappingReplacesOnlyOwnSettings) {
  view.netdevs[0].state.addresses = {"10.1.1.1/24"};
  apply(plan());
  desired.ports[0].network = {"192.168.100.11/24", {}};
  const SetupPlan made = plan();
  ASSERT_EQ(made.ports.size(), 1U);
  EXPECT_THAT(
      describeChanges(made.ports[0]),
      ElementsAre("mtu 9000 -> 1500", "address -192.168.100.10/24", "address +192.168.100.11/24"));
}

TEST_F(SetupPlanTest, RestoresEntryThatMappingNoLongerHas) {
  view.running = {"systemd", "NetworkManager"};
  const SetupNetdev before = view.netdevs[0];
  apply(plan());
  desired.ports.clear();
  const SetupPlan made = plan();
  ASSERT_EQ(made.files.size(), 1U);
  EXPECT_FALSE(made.files[0].after.exists);
  ASSERT_EQ(made.ports.size(), 1U);
  EXPECT_EQ(made.ports[0].after, before.state);
}

TEST_F(SetupPlanTest, UndoAfterSeveralSetupsRestoresFirstState) {
  view.files["/etc/nccl.conf"] = {true, "NCCL_DEBUG=INFO", 0640, 0, 5};
  view.netdevs[0].state.addresses = {"192.168.100.10/24", "10.1.1.1/24"};
  view.gpu = view.gpuDriver = view.peerMemoryLoadable = true;
  desired.peerMemory = true;
  desired.nccl = {3, 41, 0, 16, 22};
  const SetupView found = view;
  apply(plan());
  EXPECT_TRUE(view.peerMemoryLoaded);
  desired.ports[0].network = {"192.168.100.12/24", 4000};
  desired.nccl = {};
  desired.ncclTopology = "<system version=\"1\"/>\n";
  apply(plan());
  apply(planUndo(view, record));
  for (const auto& [path, file] : view.files) {
    const auto was = found.files.find(path);
    EXPECT_EQ(file, was == found.files.end() ? FileState{} : was->second) << path;
  }
  EXPECT_EQ(view.netdevs[0].state, found.netdevs[0].state);
  EXPECT_FALSE(view.peerMemoryLoaded);
}

TEST_F(SetupPlanTest, UndoKeepsLinesThatOthersAddedToNcclConf) {
  view.files["/etc/nccl.conf"] = {true, "A=1\n", 0644, 0, 0};
  desired.nccl.gidIndex = 3;
  apply(plan());
  view.files["/etc/nccl.conf"].content += "B=2\n";
  EXPECT_EQ(fileOf(planUndo(view, record), "/etc/nccl.conf"), "A=1\nB=2\n");
}

TEST_F(SetupPlanTest, NcclVariablesComeAndGoWithTheMapping) {
  view.files["/etc/nccl.conf"] = {true, "A=1\n", 0640, 0, 5};
  const FileState found = view.files["/etc/nccl.conf"];
  desired.nccl.environment = {{"NCCL_DEBUG", "WARN"}, {"NCCL_CROSS_NIC", "0"}};
  apply(plan());
  EXPECT_THAT(view.files["/etc/nccl.conf"].content,
              HasSubstr("\nNCCL_CROSS_NIC=0\nNCCL_DEBUG=WARN\n"));
  EXPECT_TRUE(plan().empty());
  desired.nccl.environment.erase("NCCL_DEBUG");
  apply(plan());
  EXPECT_THAT(view.files["/etc/nccl.conf"].content, Not(HasSubstr("NCCL_DEBUG")));
  apply(planUndo(view, record));
  EXPECT_EQ(view.files["/etc/nccl.conf"], found);
}

TEST_F(SetupPlanTest, IgnoresAddressesThatManagerChanged) {
  view.running.insert("NetworkManager");
  view.netdevs[0].state.addresses = {"10.1.1.1/24"};
  const SetupPlan made = plan();
  view.netdevs[0].state = {9000, true, {"192.168.100.10/24", "fd00::7/64"}, 0, 0};
  EXPECT_EQ(pendingChanges(made, view), "");
  view.netdevs[0].state.mtu = 1500;
  EXPECT_THAT(pendingChanges(made, view), HasSubstr("ens7: mtu 1500 -> 9000"));
}

TEST_F(SetupPlanTest, LeavesTeamedAndAmbiguousPortsUnchanged) {
  desired.ports[0].teamed = true;
  EXPECT_TRUE(plan().empty());
  EXPECT_THAT(plan().notes, Contains(HasSubstr("teamed")));
  desired.ports[0].teamed = false;
  view.netdevs.push_back(netdev("ens8", "52:54:00:00:00:01"));
  EXPECT_TRUE(plan().empty());
  EXPECT_THAT(plan().notes, Contains(HasSubstr("2 interfaces")));
  desired.ports[0].function = "0000:01:00.0";
  view.netdevs[1].function = "0000:02:00.0";
  EXPECT_EQ(plan().ports.size(), 1U);
  view.netdevs.clear();
  EXPECT_THAT(plan().notes, Contains(HasSubstr("no interface with 52:54:00:00:00:01")));
}

TEST_F(SetupPlanTest, LoadsPeerMemoryOnlyForGpuWithDriver) {
  desired.peerMemory = true;
  const std::string path = "/etc/modules-load.d/vfpass.conf";
  EXPECT_THAT(fileOf(plan(), path), HasSubstr("no /etc"));
  view.gpu = true;
  EXPECT_THAT(plan().notes, Contains(HasSubstr("has no driver")));
  view.gpuDriver = true;
  EXPECT_THAT(plan().notes, Contains(HasSubstr("needs DMA-BUF")));
  EXPECT_FALSE(plan().loadPeerMemory);
  view.peerMemoryLoadable = true;
  EXPECT_THAT(fileOf(plan(), path), HasSubstr("\nnvidia-peermem\n"));
  EXPECT_TRUE(plan().loadPeerMemory);
  view.peerMemoryLoaded = true;
  EXPECT_FALSE(plan().loadPeerMemory);
  EXPECT_FALSE(plan().record.peerMemory);
}

TEST_F(SetupPlanTest, DisablesNvlinkUntilMappingChanges) {
  const std::string path = "/etc/modprobe.d/vfpass-nvlink.conf";
  desired.nvlinkDisabled = true;
  EXPECT_THAT(fileOf(plan(), path), HasSubstr("no /etc"));
  view.gpu = true;
  view.missingFolders = {"/etc/modprobe.d"};
  EXPECT_EQ(fileOf(plan(), path), header + std::string("options nvidia NVreg_NvLinkDisable=1\n"));
  EXPECT_THAT(plan().notes, Contains(HasSubstr("when it is loaded next: restart the guest")));
  apply(plan());
  view.nvlinkDisabled = true;
  EXPECT_TRUE(plan().empty());
  EXPECT_THAT(plan().notes, Not(Contains(HasSubstr("NVLink"))));
  desired.nvlinkDisabled = false;
  const auto made = plan();
  const auto found = std::find_if(made.files.begin(), made.files.end(),
                                  [&](const SetupFile& each) { return each.path == path; });
  ASSERT_NE(found, made.files.end());
  EXPECT_FALSE(found->after.exists);
  EXPECT_THAT(setupPaths(desired, record), Contains(path));
}

TEST_F(SetupPlanTest, NotesOverriddenNcclSettings) {
  view.files["/etc/nccl.conf"] = {true, "NCCL_IB_TC=106\n", 0644, 0, 0};
  desired.nccl.trafficClass = 41;
  EXPECT_THAT(plan().notes, Contains(HasSubstr("`NCCL_IB_TC=106` no longer takes effect")));
}

TEST_F(SetupPlanTest, RefusesToReplaceLink) {
  view.unusable["/etc/nccl.conf"] = "not a regular file";
  desired.nccl.gidIndex = 3;
  EXPECT_THROW(static_cast<void>(plan()), Error);
}

TEST_F(SetupPlanTest, RecordsCreatedDirectories) {
  view.missingFolders = {"/etc/vfpass", "/etc/sysctl.d"};
  EXPECT_THAT(plan().record.folders, ElementsAre("/etc/vfpass"));
}

TEST(SetupRecord, RejectsInvalidRecords) {
  const std::string file = R"({"path": "/etc/shadow", "exists": false})";
  for (const std::string& text :
       {std::string("{"), std::string("[]"), std::string(R"({"version": 2})"),
        R"({"version": 1, "files": [)" + file + "]}",
        std::string(R"({"version": 1, "files": [{"path": "/etc/nccl.conf", "exists": true}]})"),
        std::string(R"({"version": 1, "folders": ["/etc/ssl"]})"),
        std::string(R"({"version": 1, "ports": [{"address": "", "original": {"mtu": 1}}]})"),
        std::string(100000, '[')}) {
    EXPECT_THROW(decodeRecord(text), Error) << text.substr(0, 80);
  }
  EXPECT_TRUE(decodeRecord(encodeRecord({})).files.empty());
}

TEST(SetupRecord, RejectsPathsThatOnlyResembleSetupFiles) {
  EXPECT_TRUE(isSetupPath("/etc/systemd/network/10-vfpass-rail0.network"));
  EXPECT_FALSE(isSetupPath("/etc/systemd/network/10-vfpass-../../shadow.network"));
  EXPECT_FALSE(isSetupPath("/etc/systemd/network/10-vfpass-.network"));
  EXPECT_FALSE(isSetupPath("/etc/nccl.conf.d"));
}

}  // namespace
}  // namespace vfpass::setup
