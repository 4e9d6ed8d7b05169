// The names of interfaces: `guest: {name: ...}`.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "vfpass/error.hpp"
#include "vfpass/setup/setup_apply.hpp"
#include "vfpass/setup/setup_plan.hpp"

namespace vfpass::setup {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

constexpr const char* linkPath = "/etc/systemd/network/10-vfpass-rail0.link";
constexpr const char* netplanPath = "/etc/netplan/90-vfpass.yaml";
constexpr const char* interfacesPath = "/etc/network/interfaces.d/vfpass";
constexpr const char* railMac = "52:54:00:00:00:01";
constexpr const char* otherMac = "52:54:00:00:00:02";
constexpr const char* link =
    "# Written by `vfpass guest-setup` on the host; --undo removes it.\n"
    "[Match]\nMACAddress=52:54:00:00:00:01\nPath=*pci-*\n\n"
    "[Link]\nName=fast0\nAlternativeNamesPolicy=database onboard slot path\n";

class InterfaceNamesTest : public testing::Test {
 protected:
  InterfaceNamesTest() {
    desired.domain = *parseUuid("4dea22b3-1d52-d8f3-2516-782e98ab3fa0");
    desired.ports = {{"rail0", false, railMac, "", false, {"192.168.100.10/24", 9000, "fast0"}}};
    view.tools = {"ip"};
    view.running = {"systemd"};
    addNetdev("ens7", railMac);
  }

  void addNetdev(const std::string& name, const std::string& address) {
    view.netdevs.push_back({name, address, "0000:01:00.0", {1500, false, {}, 0, 0}});
  }

  void runNetplan() {
    view.tools.insert("netplan");
    view.running.insert("systemd-networkd");
    view.netplanFolder = true;
  }

  void runIfupdown() {
    view.tools.insert("ifup");
    view.running.insert("networking");
    view.interfacesFolder = true;
  }

  [[nodiscard]] SetupPlan plan() const { return planSetup(desired, view, record); }

  [[nodiscard]] std::string refusal() const {
    try {
      static_cast<void>(plan());
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::badInput);
      return error.what();
    }
    return "planned";
  }

  std::string fileOf(const std::string& path) const {
    const auto found = view.files.find(path);
    return found == view.files.end() || !found->second.exists ? "" : found->second.content;
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
          break;
        }
      }
    }
    record = made.undo ? SetupRecord{} : decodeRecord(encodeRecord(made.record));
  }

  // udev's part of a reboot: names by .link file, or else by slot.
  void reboot() { view.netdevs[0].name = fileOf(linkPath).empty() ? "ens7" : "fast0"; }

  DesiredSetup desired;
  SetupView view;
  SetupRecord record;
};

TEST_F(InterfaceNamesTest, LinkFileNamesInterfaceAtNextStart) {
  for (const std::set<std::string>& running : {std::set<std::string>{"systemd"},
                                               {"systemd", "NetworkManager"},
                                               {"systemd", "systemd-networkd"},
                                               {"systemd", "networking"}}) {
    view.running = running;
    view.tools = {"ip", "networkctl", "ifup"};
    view.interfacesFolder = true;
    const SetupPlan made = plan();
    SCOPED_TRACE(made.tool);
    EXPECT_THAT(made.notes,
                Contains("rail0: the interface ens7 is named fast0 from the guest's next start"));
    ASSERT_EQ(made.ports.size(), 1U);
    EXPECT_EQ(made.ports[0].netdev, "ens7");
    EXPECT_EQ(made.ports[0].rename, "");
    const SetupView found = view;
    apply(made);
    EXPECT_EQ(fileOf(linkPath), link);
    EXPECT_TRUE(plan().empty()) << "before the reboot";
    reboot();
    EXPECT_TRUE(plan().empty()) << "after the reboot";
    EXPECT_THAT(plan().notes, Not(Contains(HasSubstr("next start"))));
    const SetupPlan undo = planUndo(view, record);
    EXPECT_THAT(undo.notes, Contains(HasSubstr("fast0 is named ens7 from the guest's next start")));
    apply(undo);
    EXPECT_EQ(fileOf(linkPath), "");
    reboot();
    EXPECT_EQ(view.netdevs[0].name, "ens7");
    EXPECT_EQ(view.netdevs[0].state, found.netdevs[0].state);
  }
}

TEST_F(InterfaceNamesTest, UndoBeforeRebootRemovesName) {
  apply(plan());
  const SetupPlan undo = planUndo(view, record);
  EXPECT_THAT(undo.notes, IsEmpty());
  apply(undo);
  EXPECT_EQ(fileOf(linkPath), "");
  EXPECT_EQ(view.netdevs[0].state, (NetdevState{1500, false, {}, 0, 0}));
}

TEST_F(InterfaceNamesTest, NamesInterfaceWithoutOtherSettings) {
  desired.ports[0].network = {{}, {}, "fast0"};
  const SetupPlan made = plan();
  EXPECT_THAT(made.ports, IsEmpty());
  ASSERT_EQ(made.files.size(), 1U);
  EXPECT_EQ(made.files[0].path, linkPath);
  apply(made);
  EXPECT_TRUE(plan().empty());
}

// ifupdown's stanza has to match at boot, so until then vfpass sets the address itself.
TEST_F(InterfaceNamesTest, IfupdownGetsTheNameOfTheNextStart) {
  runIfupdown();
  const SetupPlan made = plan();
  EXPECT_FALSE(made.ports[0].byTool);
  apply(made);
  EXPECT_THAT(fileOf(interfacesPath), HasSubstr("allow-hotplug fast0\niface fast0 inet static\n"));
  EXPECT_THAT(fileOf(interfacesPath), Not(HasSubstr("ens7")));
  reboot();
  desired.ports[0].network.mtu = 4000;
  EXPECT_TRUE(plan().ports[0].byTool);
}

TEST_F(InterfaceNamesTest, IfupdownGetsTheFormerNameWhenMappingHasNone) {
  runIfupdown();
  apply(plan());
  reboot();
  desired.ports[0].network.name.reset();
  const SetupPlan made = plan();
  EXPECT_THAT(made.notes,
              Contains("rail0: the interface fast0 is named ens7 from the guest's next start"));
  apply(made);
  EXPECT_THAT(fileOf(interfacesPath), HasSubstr("iface ens7 inet static\n"));
  EXPECT_TRUE(plan().empty());
  reboot();
  EXPECT_EQ(view.netdevs[0].name, "ens7");
  EXPECT_TRUE(plan().empty());
}

TEST_F(InterfaceNamesTest, ArpSettingsUseTheNameOfTheNextStart) {
  desired.ports.push_back({"rail1", false, otherMac, "", false, {"192.168.101.10/24", {}, {}}});
  addNetdev("ens8", otherMac);
  const SetupPlan made = plan();
  EXPECT_THAT(describeChanges(made.ports[0]), Contains("arp_announce 0 -> 2"));
  EXPECT_EQ(made.ports[0].netdev, "ens7");
  apply(made);
  const std::string text = fileOf("/etc/sysctl.d/90-vfpass.conf");
  EXPECT_THAT(text, HasSubstr("net/ipv4/conf/fast0/arp_announce = 2\n"));
  EXPECT_THAT(text, HasSubstr("net/ipv4/conf/ens8/arp_announce = 2\n"));
  EXPECT_THAT(text, Not(HasSubstr("ens7")));
}

TEST_F(InterfaceNamesTest, NetplanRenamesNow) {
  runNetplan();
  const SetupPlan made = plan();
  ASSERT_EQ(made.ports.size(), 1U);
  EXPECT_TRUE(made.ports[0].byTool);
  EXPECT_THAT(describeChanges(made.ports[0]), ElementsAre("name ens7 -> fast0", "mtu 1500 -> 9000",
                                                          "address +192.168.100.10/24", "up"));
  EXPECT_THAT(made.notes, IsEmpty());
  EXPECT_EQ(reversed(made).ports[0].netdev, "fast0");
  EXPECT_EQ(reversed(made).ports[0].rename, "ens7");
  EXPECT_THAT(pendingChanges(made, view), HasSubstr("fast0 does not exist"));
  apply(made);
  EXPECT_EQ(pendingChanges(made, view), "");
  EXPECT_THAT(fileOf(netplanPath), HasSubstr("      set-name: fast0\n"));
  EXPECT_EQ(fileOf(linkPath), "");
  EXPECT_TRUE(plan().empty());
  const SetupPlan undo = planUndo(view, record);
  ASSERT_EQ(undo.ports.size(), 1U);
  EXPECT_EQ(undo.ports[0].netdev, "fast0");
  EXPECT_EQ(undo.ports[0].rename, "ens7");
}

TEST_F(InterfaceNamesTest, NetplanReturnsToFormerNameWhenMappingHasNone) {
  runNetplan();
  apply(plan());
  desired.ports[0].network.name = "fast1";
  apply(plan());
  EXPECT_EQ(view.netdevs[0].name, "fast1");
  desired.ports[0].network.name.reset();
  apply(plan());
  EXPECT_EQ(view.netdevs[0].name, "ens7");
  EXPECT_THAT(fileOf(netplanPath), HasSubstr("      set-name: ens7\n"));
  EXPECT_TRUE(plan().empty());
}

// Without addresses the interface is not netplan's as far as vfpass knows, so it stays up.
TEST_F(InterfaceNamesTest, DoesNotRenameRunningInterfaceThatOthersConfigure) {
  runNetplan();
  desired.ports[0].network = {{}, {}, "fast0"};
  const SetupPlan made = plan();
  EXPECT_THAT(made.ports, IsEmpty());
  apply(made);
  EXPECT_EQ(fileOf(linkPath), link);
  reboot();
  const SetupPlan undo = planUndo(view, record);
  EXPECT_THAT(undo.ports, IsEmpty());
  EXPECT_THAT(undo.notes, Contains(HasSubstr("fast0 is named ens7 from the guest's next start")));
}

TEST_F(InterfaceNamesTest, RefusesNameOfAnotherInterface) {
  addNetdev("fast0", otherMac);
  EXPECT_EQ(refusal(),
            "rail0: cannot name the interface fast0: another interface in the guest has this name");
  view.netdevs.pop_back();
  view.otherNames = {"fast0"};
  EXPECT_THAT(refusal(), HasSubstr("another interface"));
  view.otherNames = {"lo"};
  EXPECT_EQ(refusal(), "planned");
  view.netdevs[0].name = "fast0";
  EXPECT_EQ(refusal(), "planned") << "its own name";
}

TEST_F(InterfaceNamesTest, TwoPortsExchangeNamesOnlyAtStart) {
  view.netdevs[0].name = "fast1";
  addNetdev("fast0", otherMac);
  desired.ports.push_back({"rail1", false, otherMac, "", false, {{}, 9000, "fast1"}});
  EXPECT_EQ(refusal(), "planned");
  runNetplan();
  EXPECT_THAT(refusal(), HasSubstr("another interface"));
}

TEST_F(InterfaceNamesTest, KeepsNameWithoutSystemd) {
  view.running.clear();
  const SetupPlan made = plan();
  EXPECT_THAT(made.files, IsEmpty());
  EXPECT_THAT(made.notes,
              Contains("rail0: the guest has no systemd, so the interface keeps the name ens7"));
  EXPECT_THAT(made.notes, Not(Contains(HasSubstr("next start"))));
}

// The lease knows that a VF is InfiniBand even if its entry has no `infiniband:`.
TEST_F(InterfaceNamesTest, RefusesInfiniband) {
  view.netdevs = {{"ibs7",
                   "00:00:10:49:fe:80:00:00:00:00:00:00:02:00:5e:00:53:00:00:01",
                   "",
                   {2044, false, {}, {}, {}}}};
  desired.ports = {{"rail0", true, "02:00:5e:00:53:00:00:01", "", false, {{}, {}, "fast0"}}};
  EXPECT_THAT(refusal(), HasSubstr("rail0: cannot name the interface fast0"));
}

// The unit must not bring the interface up before udev has renamed it.
TEST_F(InterfaceNamesTest, UnitWaitsForTheName) {
  apply(plan());
  EXPECT_THAT(fileOf("/etc/vfpass/guest-network.conf"),
              HasSubstr("; name\n52:54:00:00:00:01 9000 192.168.100.10/24 fast0\n"));
}

TEST_F(InterfaceNamesTest, RefusesRecordWithInvalidNames) {
  apply(plan());
  const std::string text = encodeRecord(record);
  const auto changed = [&](const std::string& from, const std::string& to) {
    std::string other = text;
    other.replace(other.find(from), from.size(), to);
    return other;
  };
  EXPECT_EQ(decodeRecord(text).ports.at(railMac).originalName, "ens7");
  EXPECT_THROW(decodeRecord(changed("\"ens7\"", "\"../x\"")), Error);
  EXPECT_THROW(decodeRecord(changed("\"fast0\"", "\"-x\"")), Error);
  EXPECT_THROW(decodeRecord(changed("\"fast0\"", "7")), Error);
  EXPECT_THROW(decodeRecord(changed("\"fast0\"", "null")), Error);
}

TEST_F(InterfaceNamesTest, ReadsRecordOfEarlierVersion) {
  desired.ports[0].network.name.reset();
  apply(plan());
  EXPECT_EQ(encodeRecord(record).find("\"name\""), std::string::npos);
  desired.ports[0].network.name = "fast0";
  apply(plan());
  EXPECT_EQ(record.ports.at(railMac).originalName, "ens7");
  EXPECT_EQ(record.ports.at(railMac).givenName, "fast0");
}

}  // namespace
}  // namespace vfpass::setup
