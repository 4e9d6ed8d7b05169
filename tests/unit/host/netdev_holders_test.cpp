#include "holders/holder_kinds.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>

#include "link_messages.hpp"
#include "process_tree.hpp"

namespace vfpass::host {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr PciAddress leasedVf{0, 1, 0, 1};

Link vfLink(const std::string& name = "eth1", int index = 7) {
  Link link;
  link.index = index;
  link.name = name;
  return link;
}

Link above(int lower, const std::string& kind, const std::string& name) {
  Link link;
  link.index = 20;
  link.name = name;
  link.kind = kind;
  link.lower = lower;
  return link;
}

class NetdevHoldersTest : public testing::Test {
 protected:
  NetdevHoldersTest() {
    function_.address = leasedVf;
    function_.driver = "mlx5_core";
    function_.isNetwork = true;
    survey_.namespaces.resize(2);
    ours().ours = true;
    ours().description = "our own network namespace";
    theirs().description = "network namespace blue";
    theirs().ourId = 3;
  }
  NamespaceLinks& ours() { return survey_.namespaces[0]; }
  NamespaceLinks& theirs() { return survey_.namespaces[1]; }
  std::vector<std::string> descriptions() {
    std::vector<std::string> texts;
    for (const Holder& holder : netdevHolders(function_, survey_)) {
      EXPECT_EQ(holder.kind, HolderKind::netdev);
      EXPECT_EQ(holder.device, leasedVf);
      EXPECT_NE(holder.remedy, "");
      texts.push_back(holder.description);
    }
    return texts;
  }
  std::string unknown(RdmaVisibility rdma = RdmaVisibility::all) {
    const auto holders = unknownHolders(function_, survey_, rdma);
    return holders.empty() ? "" : holders.front().description;
  }

  FunctionFacts function_;
  LinkSurvey survey_;
};

TEST_F(NetdevHoldersTest, IgnoresIdleNetdev) {
  ours().links = {{vfLink(), leasedVf}};
  EXPECT_THAT(descriptions(), IsEmpty());
  EXPECT_EQ(unknown(), "");
}

TEST_F(NetdevHoldersTest, IgnoresNetdevsOfOtherFunctions) {
  Link up = vfLink();
  up.up = true;
  ours().links = {{up, PciAddress{0, 1, 0, 2}}, {up, std::nullopt}};
  theirs().links = {{up, PciAddress{0, 1, 0, 2}}};
  EXPECT_THAT(descriptions(), IsEmpty());
}

TEST_F(NetdevHoldersTest, ReportsNetdevThatIsUp) {
  Link link = vfLink();
  link.up = true;
  ours().links = {{link, leasedVf}};
  EXPECT_THAT(descriptions(), ElementsAre("its netdev eth1 is up"));
}

TEST_F(NetdevHoldersTest, NamesMasterAndItsKind) {
  Link link = vfLink();
  link.master = 9;
  Link bond = vfLink("bond0", 9);
  bond.kind = "bond";
  ours().links = {{link, leasedVf}, {bond, std::nullopt}};
  EXPECT_THAT(descriptions(), ElementsAre("its netdev eth1 belongs to bond bond0"));
  ours().links.pop_back();
  EXPECT_THAT(descriptions(), ElementsAre("its netdev eth1 belongs to a bond or bridge"));
}

TEST_F(NetdevHoldersTest, ReportsUpperDevices) {
  ours().links = {{vfLink(), leasedVf}, {above(7, "macvlan", "mv0"), std::nullopt}};
  EXPECT_THAT(descriptions(), ElementsAre("its netdev eth1 carries macvlan mv0"));
}

// A macvlan can be in a container while the netdev below it stays on the host.
TEST_F(NetdevHoldersTest, ReportsUpperDevicesInOtherNamespaces) {
  Link upper = above(7, "ipvlan", "eth0");
  upper.lowerNamespace = 3;
  ours().links = {{vfLink(), leasedVf}};
  theirs().links = {{upper, std::nullopt}};
  EXPECT_THAT(descriptions(),
              ElementsAre("its netdev eth1 carries ipvlan eth0 of network namespace blue"));
}

TEST_F(NetdevHoldersTest, ComparesIndicesWithinOneNamespace) {
  Link elsewhere = above(7, "macvlan", "mv0");
  elsewhere.lowerNamespace = 4;  // number 4 is not ours
  ours().links = {{vfLink(), leasedVf}, {elsewhere, std::nullopt}};
  theirs().links = {{elsewhere, std::nullopt}, {above(7, "vlan", "v"), std::nullopt}};
  EXPECT_THAT(descriptions(), IsEmpty());
  theirs().ourId.reset();
  elsewhere.lowerNamespace = 3;
  theirs().links = {{elsewhere, std::nullopt}};
  EXPECT_THAT(descriptions(), IsEmpty());
}

TEST_F(NetdevHoldersTest, ReportsAddresses) {
  ours().links = {{vfLink(), leasedVf}};
  ours().addressed = {7};
  EXPECT_THAT(descriptions(), ElementsAre("its netdev eth1 has addresses"));
}

TEST_F(NetdevHoldersTest, ReportsIdleNetdevInOtherNamespace) {
  theirs().links = {{vfLink("eth\x1b[2J"), leasedVf}};
  EXPECT_THAT(descriptions(), ElementsAre("its netdev eth\\x1b[2J is in network namespace blue"));
}

TEST_F(NetdevHoldersTest, JoinsReasons) {
  Link link = vfLink();
  link.up = true;
  link.master = 5;
  ours().links = {{link, leasedVf}};
  ours().addressed = {7};
  EXPECT_THAT(descriptions(), ElementsAre("its netdev eth1 is up, belongs to a bond or bridge and "
                                          "has addresses"));
}

// Kernels before 5.14 do not report the parent device of a link.
TEST_F(NetdevHoldersTest, FallsBackToSysfsInOwnNamespace) {
  Link link = vfLink();
  link.up = true;
  ours().links = {{link, std::nullopt}};
  theirs().links = {{link, std::nullopt}};
  function_.netdevs = {{"eth1", 7, true, false}};
  EXPECT_THAT(descriptions(), ElementsAre("its netdev eth1 is up"));
  EXPECT_EQ(unknown(), "");
}

TEST_F(NetdevHoldersTest, ReportsUnknownHolderWithoutNetdev) {
  EXPECT_EQ(unknown(),
            "bound to mlx5_core but has no netdev in any network namespace; cannot tell who uses "
            "it");
  theirs().links = {{vfLink(), leasedVf}};
  EXPECT_EQ(unknown(), "");
}

TEST_F(NetdevHoldersTest, AcceptsRdmaDeviceInsteadOfNetdev) {
  function_.rdma = {{"mlx5_3"}};
  function_.linkLayer = LinkLayer::infiniband;
  EXPECT_EQ(unknown(), "");
}

// The netdev of an Ethernet RDMA device can be in a namespace that only a descriptor in the queue
// of a socket keeps alive.
TEST_F(NetdevHoldersTest, RequiresNetdevOfEthernetRdmaDevice) {
  function_.rdma = {{"mlx5_3"}};
  function_.linkLayer = LinkLayer::ethernet;
  EXPECT_THAT(unknown(), HasSubstr("has no netdev in any network namespace"));
  theirs().links = {{vfLink(), leasedVf}};
  EXPECT_EQ(unknown(), "");
}

TEST_F(NetdevHoldersTest, ReportsUnreadableNamespace) {
  ours().links = {{vfLink(), leasedVf}};
  survey_.blindSpot =
      "cannot read the links of network namespace blue: Operation not permitted (EPERM)";
  EXPECT_EQ(unknown(), survey_.blindSpot);
}

TEST_F(NetdevHoldersTest, ReportsUnknownHolderWhenRdmaDevicesAreHidden) {
  ours().links = {{vfLink(), leasedVf}};
  EXPECT_THAT(unknown(RdmaVisibility::ownNamespace), HasSubstr("netns exclusive"));
  function_.rdma = {{"mlx5_3"}};
  EXPECT_EQ(unknown(RdmaVisibility::ownNamespace), "");
  function_.rdma.clear();
  survey_.namespaces.pop_back();
  EXPECT_EQ(unknown(RdmaVisibility::ownNamespace), "");
}

TEST_F(NetdevHoldersTest, ReportsUnknownHolderForUserSpaceDriver) {
  function_.isNetwork = false;
  for (const char* driver : {"uio_pci_generic", "igb_uio", "xen-pciback", "hisi_acc_vfio_pci"}) {
    function_.driver = driver;
    EXPECT_THAT(unknown(), HasSubstr(std::string("bound to ") + driver)) << driver;
  }
  function_.driver = "pci-stub";
  function_.isNetwork = true;
  EXPECT_EQ(unknown(), "");
}

TEST_F(NetdevHoldersTest, ReportsUnknownHolderForVirtualDevice) {
  ours().links = {{vfLink(), leasedVf}};
  function_.virtualDevices = {"vDPA device vdpa0"};
  EXPECT_THAT(unknown(), HasSubstr("vDPA device vdpa0 was created on it"));
}

TEST_F(NetdevHoldersTest, AcceptsUnreadableNamespaceOfUserWhenNetdevIsKnown) {
  survey_.unread = "cannot read the links of the network namespace of x (pid 9): timeout";
  EXPECT_EQ(unknown(),
            "bound to mlx5_core but has no netdev in any network namespace that can be read; "
            "cannot tell who uses it: " +
                survey_.unread);
  ours().links = {{vfLink(), leasedVf}};
  EXPECT_EQ(unknown(), "");
}

TEST(LinkSurveyReading, DetectsTruncatedAndInterruptedDumps) {
  NamespaceReply reply;
  addReply(messages::link(1, 0, {}), true, true, reply);
  addReply(messages::done(), false, true, reply);
  EXPECT_EQ(errorOf(reply, true), EBADMSG);
  EXPECT_FALSE(wasInterrupted(reply));
  addReply(messages::link(2, 0, {}, NLM_F_DUMP_INTR) + messages::done(), true, true, reply);
  EXPECT_EQ(errorOf(reply, true), 0);
  EXPECT_TRUE(wasInterrupted(reply));
  reply.otherError = EPERM;
  EXPECT_EQ(errorOf(reply, true), EPERM);
}

TEST(LinkSurveyReading, KeepsLinksOfInterruptedDumps) {
  const LinkDump earlier{{vfLink("eth1", 7), vfLink("eth2", 8)}, 0, true};
  LinkDump later{{vfLink("eth2", 8), vfLink("eth3", 9)}, 0, true};
  addMissing(earlier, later);
  EXPECT_THAT(later.links, testing::UnorderedElementsAre(testing::Field(&Link::name, "eth1"),
                                                         testing::Field(&Link::name, "eth2"),
                                                         testing::Field(&Link::name, "eth3")));
}

TEST(FunctionOfDevice, FindsPciFunctionOfDeviceOnOtherBus) {
  const ProcessTree tree;
  tree.function("0000:01:00.0");
  const std::string device = hosts::SysfsTree::folderOf("0000:01:00.0") + "/virtio3";
  tree.file(device + "/uevent", "");
  tree.link("sys/bus/virtio/devices/virtio3", device);
  const Root root(tree.path());
  EXPECT_EQ(functionOfDevice(root, "virtio", "virtio3"), (PciAddress{0, 1, 0, 0}));
  EXPECT_EQ(functionOfDevice(root, "pci", "0000:3b:00.2"), (PciAddress{0, 0x3b, 0, 2}));
  for (const char* name : {"", "..", "../virtio/devices/virtio3", "virtio9"}) {
    EXPECT_EQ(functionOfDevice(root, "virtio", name), std::nullopt) << name;
    EXPECT_EQ(functionOfDevice(root, name, "virtio3"), std::nullopt) << name;
  }
}

TEST(LastFunctionOnPath, ReturnsDeepestFunction) {
  EXPECT_EQ(lastFunctionOnPath("../../devices/pci0000:00/0000:00:01.0/0000:01:00.2/infiniband/x"),
            (PciAddress{0, 1, 0, 2}));
  EXPECT_EQ(lastFunctionOnPath("../../devices/virtual/infiniband/rxe0"), std::nullopt);
  EXPECT_EQ(lastFunctionOnPath(""), std::nullopt);
  EXPECT_EQ(lastFunctionOnPath("///"), std::nullopt);
}

}  // namespace
}  // namespace vfpass::host
