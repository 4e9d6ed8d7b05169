#include "vfpass/setup/setup_apply.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "setup_guest.hpp"
#include "vfpass/error.hpp"

namespace vfpass::setup {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class SetupApplyTest : public testing::Test {
 protected:
  SetupApplyTest() {
    guest.addNetdev("ens7", "52:54:00:00:00:01", "0000:01:00.0");
    guest.addNetdev("ens8", "52:54:00:00:00:02", "0000:02:00.0");
    guest.write("sys/class/net/ens7/addresses", "inet 10.1.1.1/24\n");
    desired.ports = {{"rail0", false, "52:54:00:00:00:01", "", false, {"192.168.100.10/24", 9000}},
                     {"rail1", false, "52:54:00:00:00:02", "", false, {"fd00::1/64", {}}}};
    desired.nccl = {3, 41, 0, 16, 22};
  }

  SetupPlan plan() {
    const ObservedGuest observed = observeGuest(tools, desired);
    return planSetup(desired, observed.view, observed.record);
  }

  void setUp() { applySetup(tools, plan()); }

  void undo() {
    const ObservedGuest observed = observeGuest(tools, {});
    applySetup(tools, planUndo(observed.view, observed.record));
  }

  // Runs a set-up that must fail; returns its error message.
  std::string failure() {
    try {
      setUp();
    } catch (const Error& error) {
      return error.what();
    }
    return "no failure";
  }

  // Cancels set-ups, each at the next step, until one completes. Returns the number of set-ups.
  int cancelAtEachStep() {
    const auto original = guest.everything();
    for (int steps = 0; steps < 100; ++steps) {
      int left = steps;
      tools.checkpoint = [&left] {
        if (left-- == 0) {
          throw Cancelled(SIGINT, "stopped by SIGINT");
        }
      };
      try {
        setUp();
        return steps + 1;
      } catch (const Cancelled& cancelled) {
        EXPECT_EQ(cancelled.signal(), SIGINT);
        EXPECT_STREQ(cancelled.what(), "stopped by SIGINT; changes in the guest rolled back");
        EXPECT_EQ(guest.everything(), original) << "step " << steps;
      }
    }
    ADD_FAILURE() << "no set-up completes";
    return 0;
  }

  SetupGuest guest;
  agent::Agent agent{guest.hypervisor, {}, "train0", std::chrono::seconds(60)};
  std::vector<std::string> warnings;
  SetupTools tools{agent, guest.root.string(), [](const std::string&) {},
                   [this](const std::string& text) { warnings.push_back(text); }};
  DesiredSetup desired;
};

TEST_F(SetupApplyTest, AppliesSetupAndThenHasNothingToDo) {
  setUp();
  EXPECT_EQ(guest.read("sys/class/net/ens7/mtu"), "9000\n");
  EXPECT_EQ(guest.read("sys/class/net/ens7/addresses"),
            "inet 10.1.1.1/24\ninet 192.168.100.10/24\n");
  EXPECT_EQ(guest.read("sys/class/net/ens8/addresses"), "inet6 fd00::1/64\n");
  EXPECT_EQ(guest.read("sys/class/net/ens8/flags"), "0x1003\n");
  EXPECT_EQ(guest.read("proc/sys/net/ipv4/conf/ens8/arp_announce"), "2\n");
  EXPECT_EQ(guest.read("proc/sys/net/ipv4/conf/ens8/arp_ignore"), "1\n");
  EXPECT_THAT(guest.read("etc/nccl.conf"), HasSubstr("\nNCCL_IB_TC=41\n"));
  EXPECT_TRUE(guest.has("etc/sysctl.d/90-vfpass.conf"));
  EXPECT_TRUE(plan().empty());
}

TEST_F(SetupApplyTest, UndoRestoresEveryByte) {
  guest.write("etc/nccl.conf", "NCCL_DEBUG=INFO");
  std::filesystem::permissions(guest.root / "etc/nccl.conf", std::filesystem::perms{0640});
  const auto original = guest.everything();
  setUp();
  EXPECT_NE(guest.everything(), original);
  desired.ports[0].network = {"192.168.100.11/24", {}};
  desired.ports.pop_back();
  desired.nccl.timeout = 20;
  desired.nccl.environment = {{"NCCL_SOCKET_IFNAME", "=eth0"}};
  desired.ncclTopology = "<system version=\"1\">\n</system>\n";
  setUp();
  EXPECT_EQ(guest.read("etc/vfpass/nccl-topology.xml"), desired.ncclTopology);
  EXPECT_THAT(guest.read("etc/nccl.conf"), HasSubstr("\nNCCL_SOCKET_IFNAME==eth0\n"));
  EXPECT_FALSE(guest.has("etc/sysctl.d/90-vfpass.conf"));
  EXPECT_EQ(guest.read("sys/class/net/ens8/addresses"), "");
  undo();
  EXPECT_EQ(guest.everything(), original);
}

TEST_F(SetupApplyTest, UndoWithoutRecordChangesNothing) {
  const ObservedGuest observed = observeGuest(tools, {});
  EXPECT_TRUE(planUndo(observed.view, observed.record).empty());
}

TEST_F(SetupApplyTest, RollsBackWhenGuestRefusesSetting) {
  desired.ports[1].network.mtu = 20000;
  const auto original = guest.everything();
  EXPECT_THAT(failure(),
              HasSubstr("cannot set up ens8 in the guest: Error: mtu greater than device maximum.; "
                        "changes in the guest rolled back"));
  EXPECT_EQ(guest.everything(), original);
}

TEST_F(SetupApplyTest, RollsBackAfterShortWrite) {
  desired.ports.clear();
  guest.write("etc/nccl.conf", "A=1\n");
  const auto original = guest.everything();
  for (const int file : {0, 1}) {
    guest.agent.failingWrite = guest.agent.writes + file;
    EXPECT_THAT(failure(), HasSubstr("changes in the guest rolled back"));
    EXPECT_EQ(guest.everything(), original) << "file " << file;
    guest.agent.failingWrite = -1;
  }
}

TEST_F(SetupApplyTest, RollsBackWhenCancelledAtAnyStep) {
  guest.write("etc/nccl.conf", "A=1\n");
  const auto original = guest.everything();
  EXPECT_GT(cancelAtEachStep(), 8);
  EXPECT_NE(guest.everything(), original);
}

TEST_F(SetupApplyTest, ReportsFailedRollbackWithUndoRemedy) {
  desired.ports.clear();
  int left = 4;
  tools.checkpoint = [&] {
    if (left-- == 0) {
      guest.agent.silent = true;
      throw Cancelled(SIGTERM, "stopped by SIGTERM");
    }
  };
  try {
    setUp();
    FAIL() << "not stopped";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("stopped by SIGTERM; cannot roll back"));
    EXPECT_THAT(error.remedy(), HasSubstr("guest-setup --undo"));
  }
}

TEST_F(SetupApplyTest, FailedSecondSetupKeepsFirst) {
  setUp();
  const auto first = guest.everything();
  desired.ports[0].network.mtu = 20000;
  desired.nccl.timeout = 20;
  EXPECT_THAT(failure(), HasSubstr("changes in the guest rolled back"));
  EXPECT_EQ(guest.everything(), first);
}

TEST_F(SetupApplyTest, ReportsAgentThatBlocksFileCommands) {
  guest.agent.forbidden = {"guest-file-open"};
  guest.write("etc/nccl.conf", "A=1\n");
  const auto original = guest.everything();
  try {
    setUp();
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::unverified);
    EXPECT_THAT(error.what(), HasSubstr("does not allow guest-file-open"));
    EXPECT_THAT(error.remedy(), HasSubstr("allow guest-file-open"));
  }
  EXPECT_EQ(guest.everything(), original);
}

/// A GPU with driver and nvidia_peermem, which loads only if `loads` exists: without OFED its
/// initialization fails.
void addPeerMemory(SetupGuest& guest, DesiredSetup& desired) {
  guest.write("sys/bus/pci/devices/0000:03:00.0/vendor", "0x10de\n");
  guest.write("sys/bus/pci/devices/0000:03:00.0/class", "0x030200\n");
  guest.write("sys/module/nvidia/version", "580.1\n");
  guest.tool("uname", "echo 6.1");
  guest.tool("modprobe", R"sh(
case "$*" in
nvidia-peermem)
  [ -e $root/loads ] || { echo 'modprobe: ERROR: could not insert: Invalid argument' >&2; exit 1; }
  mkdir -p $root/sys/module/nvidia_peermem ;;
"-r nvidia-peermem") rmdir $root/sys/module/nvidia_peermem ;;
esac)sh");
  guest.write("lib/modules/6.1/modules.dep", "updates/nvidia-peermem.ko: updates/nvidia.ko\n");
  desired.peerMemory = true;
}

constexpr const char* modulesPath = "etc/modules-load.d/vfpass.conf";

TEST_F(SetupApplyTest, DoesNotLoadModuleAtBootThatDoesNotLoadNow) {
  addPeerMemory(guest, desired);
  setUp();
  EXPECT_THAT(warnings, ElementsAre(HasSubstr("Invalid argument; install OFED first")));
  EXPECT_FALSE(guest.has(modulesPath));
  EXPECT_EQ(guest.read("sys/class/net/ens7/mtu"), "9000\n") << "the rest is set up";
  undo();
  EXPECT_FALSE(guest.has(modulesPath));
  EXPECT_FALSE(guest.has("var/lib/vfpass-setup/originals.json"));
}

TEST_F(SetupApplyTest, LoadsModuleAtBootThatLoadsNow) {
  addPeerMemory(guest, desired);
  guest.write("loads", "");
  setUp();
  EXPECT_TRUE(warnings.empty());
  EXPECT_THAT(guest.read(modulesPath), HasSubstr("\nnvidia-peermem\n"));
  EXPECT_TRUE(plan().empty());
  undo();
  EXPECT_FALSE(guest.has(modulesPath));
  EXPECT_FALSE(guest.has("sys/module/nvidia_peermem"));
}

// The guest booted without OFED, or an earlier vfpass wrote the line regardless.
TEST_F(SetupApplyTest, RemovesEarlierLineOfModuleThatNoLongerLoads) {
  addPeerMemory(guest, desired);
  guest.write("loads", "");
  setUp();
  ASSERT_TRUE(guest.has(modulesPath));
  std::filesystem::remove(guest.root / "loads");
  std::filesystem::remove(guest.root / "sys/module/nvidia_peermem");
  setUp();
  EXPECT_THAT(warnings, ElementsAre(HasSubstr("does not load it at boot")));
  EXPECT_FALSE(guest.has(modulesPath));
  undo();
  EXPECT_FALSE(guest.has(modulesPath));
}

TEST_F(SetupApplyTest, LeavesOlderModuleAlone) {
  addPeerMemory(guest, desired);
  std::filesystem::create_directories(guest.root / "sys/module/nv_peer_mem");
  setUp();
  EXPECT_TRUE(warnings.empty());
  EXPECT_FALSE(guest.has(modulesPath));
}

TEST_F(SetupApplyTest, ActivatesConnectionInNetworkManager) {
  guest.tool("nmcli", R"sh(
case "$*" in
"-t -f RUNNING general") echo running ;;
"connection reload") echo "$*" >>$root/log.nmcli ;;
"-w 30 connection up id vfpass-rail0 ifname ens7")
  echo "$*" >>$root/log.nmcli
  echo 9000 >$root/sys/class/net/ens7/mtu; echo 0x1003 >$root/sys/class/net/ens7/flags
  echo "inet 192.168.100.10/24" >$root/sys/class/net/ens7/addresses ;;
*) exit 1 ;;
esac)sh");
  std::filesystem::create_directories(guest.root / "etc/NetworkManager/system-connections");
  desired.ports.pop_back();
  setUp();
  EXPECT_EQ(guest.read("log.nmcli"),
            "connection reload\n-w 30 connection up id vfpass-rail0 ifname ens7\n");
  EXPECT_TRUE(plan().empty());
  // NetworkManager has removed an address that existed before; undo restores it.
  undo();
  EXPECT_EQ(guest.read("sys/class/net/ens7/addresses"), "inet 10.1.1.1/24\n");
  EXPECT_EQ(guest.read("sys/class/net/ens7/mtu"), "1500\n");
}

// A connection stays active after its file was removed, and NetworkManager then has no profile to
// delete. This one refuses a second activation.
constexpr const char* keepsConnectionsUp = R"sh(
case "$*" in
"-t -f RUNNING general") echo running ;;
"connection reload") ;;
"-w 30 connection up id vfpass-rail0 ifname ens7")
  [ ! -e $root/active ] || exit 1
  echo vfpass-rail0 >$root/active
  echo 9000 >$root/sys/class/net/ens7/mtu; echo 0x1003 >$root/sys/class/net/ens7/flags
  echo "inet 192.168.100.10/24" >$root/sys/class/net/ens7/addresses ;;
"-g GENERAL.CONNECTION device show ens7") cat $root/active ;;
"connection down id vfpass-rail0") echo >$root/active ;;
*) exit 1 ;;
esac)sh";

TEST_F(SetupApplyTest, UndoDeactivatesConnectionThatNetworkManagerKeepsUp) {
  guest.tool("nmcli", keepsConnectionsUp);
  std::filesystem::create_directories(guest.root / "etc/NetworkManager/system-connections");
  desired.ports.pop_back();
  setUp();
  EXPECT_EQ(guest.read("active"), "vfpass-rail0\n");
  undo();
  EXPECT_EQ(guest.read("active"), "\n");
}

TEST_F(SetupApplyTest, FailedSecondSetupKeepsConnectionOfFirst) {
  guest.tool("nmcli", keepsConnectionsUp);
  std::filesystem::create_directories(guest.root / "etc/NetworkManager/system-connections");
  desired.ports.pop_back();
  setUp();
  desired.ports[0].network.mtu = 8000;
  EXPECT_THAT(failure(), HasSubstr("changes in the guest rolled back"));
  EXPECT_EQ(guest.read("active"), "vfpass-rail0\n");
}

// netplan's files match the new name.
constexpr const char* netplanThatMatchesNames = R"sh(
echo "$*" >>$root/log.netplan
[ "$1" = apply ] || exit 0
[ ! -e $root/broken ] || { echo 'netplan: no' >&2; exit 1; }
name=$(sed -n 's/.*set-name: //p' $root/etc/netplan/90-vfpass.yaml 2>/dev/null) || exit 0
[ -n "$name" ] || exit 0
net=$root/sys/class/net/$name
echo 9000 >$net/mtu; echo 0x1003 >$net/flags; echo "inet 192.168.100.10/24" >$net/addresses)sh";

class NetplanRenameTest : public SetupApplyTest {
 protected:
  NetplanRenameTest() {
    guest.tool("netplan", netplanThatMatchesNames);
    guest.tool("networkctl", "");
    guest.tool("systemctl", R"([ "$*" = "-q is-active systemd-networkd.service" ])");
    guest.tool("sed", R"(exec /usr/bin/sed "$@")");
    guest.write("run/systemd/system/.keep", "");
    std::filesystem::create_directories(guest.root / "etc/netplan");
    desired.ports.pop_back();
    desired.ports[0].network.name = "fast0";
  }
};

TEST_F(NetplanRenameTest, RenamesBeforeNetplanApplyAndUndoesIt) {
  const auto original = guest.everything();
  setUp();
  EXPECT_FALSE(guest.has("sys/class/net/ens7"));
  EXPECT_EQ(guest.read("sys/class/net/fast0/addresses"), "inet 192.168.100.10/24\n");
  EXPECT_TRUE(plan().empty());
  undo();
  EXPECT_EQ(guest.everything(), original);
}

TEST_F(NetplanRenameTest, RollsBackTheName) {
  const auto original = guest.everything();
  guest.write("broken", "");
  EXPECT_THAT(failure(), HasSubstr("netplan: no; changes in the guest rolled back"));
  std::filesystem::remove(guest.root / "broken");
  EXPECT_EQ(guest.everything(), original);
}

TEST_F(NetplanRenameTest, RollsBackWhenCancelledAtAnyStep) {
  EXPECT_GT(cancelAtEachStep(), 8);
  EXPECT_TRUE(guest.has("sys/class/net/fast0"));
}

// No network manager reads a .link file.
TEST_F(SetupApplyTest, LinkFileReloadsNothing) {
  guest.tool("networkctl", "exit 1");
  guest.tool("systemctl", "[ $1 != -q ] || [ $2 = enable ] || [ $2 = disable ]");
  guest.write("run/systemd/system/.keep", "");
  std::filesystem::create_directories(guest.root / "etc/systemd/system");
  std::filesystem::create_directories(guest.root / "etc/sysctl.d");
  desired.ports[0].network.name = "fast0";
  const auto original = guest.everything();
  setUp();
  EXPECT_THAT(guest.read("etc/systemd/network/10-vfpass-rail0.link"), HasSubstr("\nName=fast0\n"));
  EXPECT_TRUE(guest.has("sys/class/net/ens7"));
  EXPECT_TRUE(plan().empty());
  undo();
  EXPECT_EQ(guest.everything(), original);
}

// A stanza of an earlier set-up is up under the current name, and the new one is for another.
TEST_F(SetupApplyTest, SetsAddressThatIfupdownDoesNotChange) {
  guest.tool("systemctl", R"sh(
case "$*" in "-q is-active networking.service") ;; is-system-running) echo running ;; *) exit 1 ;; esac)sh");
  guest.write("run/systemd/system/.keep", "");
  guest.tool("sed", R"(exec /usr/bin/sed "$@")");
  guest.tool("ifquery", R"([ "$1" != --state ] || [ $2 != ens7 ] || echo ens7=ens7)");
  guest.tool("ifup", "exit 1");
  guest.tool("ifdown", "exit 0");
  guest.write("etc/network/interfaces", "source /etc/network/interfaces.d/*\n");
  desired.ports.pop_back();
  setUp();
  EXPECT_EQ(guest.read("sys/class/net/ens7/mtu"), "9000\n") << "although ifquery shows it as up";
  desired.ports[0].network.name = "fast0";
  desired.ports[0].network.address = "192.168.100.11/24";
  setUp();
  EXPECT_EQ(guest.read("sys/class/net/ens7/addresses"),
            "inet 10.1.1.1/24\ninet 192.168.100.11/24\n");
  EXPECT_THAT(guest.read("etc/network/interfaces.d/vfpass"), HasSubstr("iface fast0 inet"));
}

// After boot the agent starts before the network manager.
TEST_F(SetupApplyTest, WaitsUntilGuestHasStarted) {
  guest.write("run/systemd/system/.keep", "");
  guest.tool("systemctl", R"sh(
case $1 in
is-system-running)
  if [ -e $root/asked ]; then echo degraded; else : >$root/asked; echo starting; fi; exit 1 ;;
-q) [ -e $root/asked ] && [ "$3" = systemd-networkd.service ] ;;
esac)sh");
  guest.tool("networkctl", "");
  const ObservedGuest observed = observeGuest(tools, desired);
  EXPECT_FALSE(observed.view.starting);
  EXPECT_TRUE(guest.has("asked"));
  EXPECT_EQ(planSetup(desired, observed.view, observed.record).tool, "systemd-networkd");
}

// ifdown reads the current file, so it has to run before the file changes; ifup fails if the
// interface already has the address.
TEST_F(SetupApplyTest, BringsInterfacesDownBeforeIfupdownFileChanges) {
  guest.tool("systemctl", R"([ "$*" = "-q is-active networking.service" ])");
  guest.tool("sed", R"(exec /usr/bin/sed "$@")");
  guest.tool("grep", R"(exec /usr/bin/grep "$@")");
  guest.tool("ifquery", R"sh(
file=$root/etc/network/interfaces.d/vfpass
case $1 in
--state) cat $root/state.$2 2>/dev/null ;;
*) grep -q "^iface $1 " $file && grep -o 'address .*' $file | sed 's/ /: /' ;;
esac)sh");
  guest.tool("ifup", R"sh(
file=$root/etc/network/interfaces.d/vfpass name=$1
address=$(grep -o 'address .*' $file) && address=${address#* }
grep -q "$address" $root/sys/class/net/$name/addresses && exit 1
echo "inet $address" >>$root/sys/class/net/$name/addresses
echo 9000 >$root/sys/class/net/$name/mtu; echo 0x1003 >$root/sys/class/net/$name/flags
echo "$1" >$root/state.$name; echo "up $1 $address" >>$root/log.ifupdown)sh");
  guest.tool("ifdown", R"sh(
echo "down $1 $(grep -o 'address .*' $root/etc/network/interfaces.d/vfpass)" >>$root/log.ifupdown
: >$root/sys/class/net/$1/addresses
rm $root/state.$1)sh");
  guest.write("etc/network/interfaces", "# local\nsource /etc/network/interfaces.d/*\n");
  guest.write("sys/class/net/ens7/addresses", "inet 192.168.100.10/24\n");
  desired.ports.pop_back();
  const auto original = guest.everything();
  setUp();
  EXPECT_TRUE(plan().empty());
  desired.ports[0].network.address = "192.168.100.11/24";
  setUp();
  EXPECT_EQ(guest.read("log.ifupdown"),
            "up ens7 192.168.100.10/24\ndown ens7 address 192.168.100.10/24\n"
            "up ens7 192.168.100.11/24\n");
  EXPECT_EQ(guest.read("sys/class/net/ens7/addresses"), "inet 192.168.100.11/24\n");
  undo();
  EXPECT_EQ(guest.everything(), original);
}

TEST_F(SetupApplyTest, DiffMarksMissingFinalNewline) {
  guest.write("etc/nccl.conf", "NCCL_DEBUG=INFO");
  desired.ports.clear();
  const GuestSetupReport report = describeSetup(plan());
  ASSERT_EQ(report.files.size(), 1U);
  EXPECT_THAT(report.files[0].diff, HasSubstr("+NCCL_IB_GID_INDEX=3\n"));
  EXPECT_THAT(report.files[0].diff, HasSubstr(" NCCL_DEBUG=INFO\n"));
  EXPECT_THAT(report.files[0].diff, HasSubstr("\\ No newline"));
}

TEST_F(SetupApplyTest, RefusesLinksAndLargeFiles) {
  std::filesystem::create_symlink("/etc/hostname", guest.root / "etc/nccl.conf");
  EXPECT_THAT(failure(),
              HasSubstr("cannot change /etc/nccl.conf in the guest: not a regular file"));
  std::filesystem::remove(guest.root / "etc/nccl.conf");
  guest.write("etc/nccl.conf", std::string(300000, 'x'));
  EXPECT_THAT(failure(), HasSubstr("larger than 256 KiB"));
}

TEST_F(SetupApplyTest, DoesNotParseFileContentAsScriptOutput) {
  guest.write("etc/nccl.conf", "A=1\nend\nnone /etc/nccl.conf\n");
  const ObservedGuest observed = observeGuest(tools, desired);
  EXPECT_EQ(observed.view.files.at("/etc/nccl.conf").content, "A=1\nend\nnone /etc/nccl.conf\n");
}

// Output that a hostile guest may send instead of the scripts' output.
TEST(SetupView, RejectsOrIgnoresInvalidScriptOutput) {
  fake::FakeHypervisor hypervisor;
  std::string output;
  hypervisor.agent = [&](const std::string& command) -> std::string {
    const auto request = nlohmann::json::parse(command);
    if (request["execute"] == "guest-info") {
      return R"({"return": {"supported_commands": [{"name": "guest-exec", "enabled": true},
        {"name": "guest-exec-status", "enabled": true}]}})";
    }
    if (request["execute"] == "guest-exec") {
      return R"({"return": {"pid": 7}})";
    }
    return nlohmann::json{
        {"return", {{"exited", true}, {"exitcode", 0}, {"out-data", agent::encodeBase64(output)}}}}
        .dump();
  };
  agent::Agent agent(hypervisor, {}, "train0", std::chrono::seconds(20));
  SetupView view;
  for (const char* text :
       {"", "file /etc/nccl.conf 644 0 0 99999\nshort\nend\n",
        "file /etc/nccl.conf 644 0 0 -1\n\nend\n", "file /etc/nccl.conf 77777 0 0 1\nx\nend\n",
        "file /etc/nccl.conf 644 0 0 4294967295\nx\nend\n", "rubbish\nend\n",
        "none /etc/nccl.conf\n"}) {
    output = text;
    EXPECT_THROW(readFiles(agent, "", {"/etc/nccl.conf"}, view), Error) << text;
  }
  output = "netdev ens7\naddress 52:54:00:00:00:01\n";
  EXPECT_THROW(readSetupView(agent, ""), Error) << "truncated";
  output =
      "netdev $(reboot)\naddress 52:54:00:00:00:01\nnetdev -x\nnetdev ..\nnetdev a b\n"
      "netdev\nvirtual\nvirtual $(reboot)\nvirtual a b\nvirtual bond0\n"
      "netdev ens7\naddress \x1b[2J\nmtu 99999999999\nflags 0xzz\n"
      "2: ens7    inet 10.0.0.1/99 scope global\n2: ens7    inet 10.0.0.2/8 scope global dynamic\n"
      "2: ens7    inet6 FE80::1/64 scope link\n2: ens7@if3    inet6 FD00::0:1/64 scope "
      "global\nend\n";
  view = readSetupView(agent, "");
  EXPECT_THAT(view.otherNames, ElementsAre("bond0"));
  ASSERT_EQ(view.netdevs.size(), 1U);
  EXPECT_EQ(view.netdevs[0].address, "");
  EXPECT_EQ(view.netdevs[0].state, (NetdevState{0, false, {"fd00::1/64"}, {}, {}}));
  output.clear();
  for (int i = 0; i < 100000; ++i) {
    output += "netdev e" + std::to_string(i) + "\n";
  }
  output += "end\n";
  EXPECT_THROW(readSetupView(agent, ""), Error) << "more output than the agent accepts";
}

}  // namespace
}  // namespace vfpass::setup
