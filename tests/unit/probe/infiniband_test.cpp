#include <gmock/gmock.h>

#include <functional>

#include "fake_verbs.hpp"
#include "rdma/endpoint.hpp"
#include "rdma/queue_pair_connection.hpp"
#include "vfpass/error.hpp"

namespace vfpass::probe {
namespace {

using testing::AllOf;
using testing::HasSubstr;

/// The text and the remedy of the Error that `work` throws; empty if it throws none.
std::string errorOf(const std::function<void()>& work) {
  try {
    work();
    return "";
  } catch (const Error& error) {
    return std::string(error.what()) + " -> " + error.remedy();
  }
}

TEST(PartitionChoice, UsesIndexOfCommonPartition) {
  const PartitionTable first{0x7fff, 0x8001};
  const PartitionTable second{0x7fff, 0x8002, 0x8001};
  EXPECT_EQ(choosePartition(first, second).index, 1);
  EXPECT_EQ(choosePartition(second, first).index, 2);
  EXPECT_EQ(choosePartition(second, first).key, 0x8001);
}

TEST(PartitionChoice, ComparesWithoutMembershipBit) {
  EXPECT_EQ(choosePartition({0x0005}, {0x8005}).key, 0x0005);
  EXPECT_EQ(choosePartition({0x8005}, {0x0005}).key, 0x8005);
}

TEST(PartitionChoice, PrefersLowIndicesOnBothSides) {
  const PartitionTable first{0xffff, 0x8001, 0x8002};
  const PartitionTable second{0x8002, 0x8001, 0xffff};
  // All three sums are 2: the lowest number decides, on both sides.
  EXPECT_EQ(choosePartition(first, second).key, 0x8001);
  EXPECT_EQ(choosePartition(second, first).key, 0x8001);
  EXPECT_EQ(choosePartition({0xffff, 0x8001}, {0xffff, 0x8001}).index, 0);
}

TEST(PartitionChoice, UsesFullMembershipOfTwo) {
  const PartitionTable both{0x7fff, 0xffff};
  EXPECT_EQ(choosePartition(both, both).index, 1);
  EXPECT_EQ(choosePartition({0x7fff}, both).index, 0);
  EXPECT_EQ(choosePartition(both, {0x7fff}).index, 1);
}

TEST(PartitionChoice, RefusesTwoLimitedMembers) {
  EXPECT_THAT(errorOf([] {
                choosePartition({0x7fff}, {0x7fff, 0x8003});
              }),
              AllOf(HasSubstr("both sides are limited members"), HasSubstr("0x7fff, 0x8003"),
                    HasSubstr("partitions.conf")));
}

TEST(PartitionChoice, RefusesWithoutCommonPartition) {
  EXPECT_THAT(errorOf([] {
                choosePartition({0x8001, 0}, {0x8002, 0x8000});
              }),
              HasSubstr("no common partition: P_Keys 0x8001 on this side, 0x8002 on the other"));
  EXPECT_THAT(errorOf([] {
                choosePartition({}, {0, 0x8000});
              }),
              HasSubstr("P_Keys none on this side, none on the other"));
}

class PortTest : public testing::Test {
 protected:
  PortTest() {
    port.state = IBV_PORT_ACTIVE;
    port.link_layer = IBV_LINK_LAYER_INFINIBAND;
    port.lid = 7;
    port.sm_lid = 1;
  }
  [[nodiscard]] std::string problem() const {
    return errorOf([this] { requireUsablePort(port, "mlx5_0 port 1"); });
  }

  ibv_port_attr port{};
};

TEST_F(PortTest, ActivePortWithLidIsUsable) {
  EXPECT_EQ(problem(), "");
  port.sm_lid = 0;
  EXPECT_EQ(problem(), "") << "a port can be configured without a subnet manager";
}

TEST_F(PortTest, NamesMissingSubnetManager) {
  port.state = IBV_PORT_INIT;
  port.lid = 0;
  port.sm_lid = 0;
  EXPECT_THAT(problem(), AllOf(HasSubstr("state INIT, LID 0, subnet manager's LID 0"),
                               HasSubstr("no subnet manager has activated it"), HasSubstr("opensm"),
                               HasSubstr("virt_enabled 2")));
}

TEST_F(PortTest, NamesLid0) {
  port.lid = 0;
  EXPECT_THAT(problem(), HasSubstr("has LID 0: the subnet manager has assigned none"));
  port.sm_lid = 0;
  EXPECT_THAT(problem(), HasSubstr("has LID 0: no subnet manager has configured it"));
  port.link_layer = IBV_LINK_LAYER_ETHERNET;
  EXPECT_EQ(problem(), "") << "RoCE has no LIDs";
}

TEST_F(PortTest, NamesDownLink) {
  port.state = IBV_PORT_DOWN;
  EXPECT_THAT(problem(), AllOf(HasSubstr("state DOWN"), HasSubstr("cable"), HasSubstr("auto")));
  port.link_layer = IBV_LINK_LAYER_ETHERNET;
  EXPECT_THAT(problem(), AllOf(HasSubstr("is not active: state DOWN"), HasSubstr("ip link set"),
                               testing::Not(HasSubstr("opensm"))));
}

TEST_F(PortTest, RemedyOfFailedTransferNamesPartition) {
  EXPECT_THAT(pathRemedy(port, "0x8001"),
              AllOf(HasSubstr("subnet manager's LID 1"), HasSubstr("partition 0x8001")));
  port.link_layer = IBV_LINK_LAYER_ETHERNET;
  EXPECT_THAT(pathRemedy(port, ""), HasSubstr("GID index"));
}

/// Two ports of one InfiniBand subnet.
class AddressTest : public PortTest {
 protected:
  AddressTest() {
    peer.localId = 9;
    peer.gid[0] = 0xfe;
    peer.gid[15] = 5;
  }
  [[nodiscard]] ibv_ah_attr path() const { return addressVector({port, 2, 3}, peer); }

  ConnectionInfo peer;
};

TEST_F(AddressTest, UsesLidWithoutGlobalHeader) {
  EXPECT_EQ(path().dlid, 9);
  EXPECT_EQ(path().port_num, 2);
  EXPECT_EQ(path().is_global, 0);
}

TEST_F(AddressTest, AddsGlobalHeaderWhereEitherPortRequiresIt) {
  port.flags = IBV_QPF_GRH_REQUIRED;
  EXPECT_EQ(path().is_global, 1);
  EXPECT_EQ(path().dlid, 9);
  EXPECT_EQ(path().grh.sgid_index, 3);
  EXPECT_EQ(path().grh.dgid.raw[15], 5);
  EXPECT_GT(path().grh.hop_limit, 1);
  port.flags = 0;
  peer.globalHeader = true;
  EXPECT_EQ(path().is_global, 1);
}

TEST_F(AddressTest, UsesGlobalHeaderOnEthernet) {
  port.link_layer = IBV_LINK_LAYER_ETHERNET;
  peer.ethernet = true;
  peer.localId = 0;
  EXPECT_EQ(path().is_global, 1);
}

TEST_F(AddressTest, RefusesPeerWithoutAddress) {
  peer.gid = {};
  port.flags = IBV_QPF_GRH_REQUIRED;
  EXPECT_THAT(errorOf([this] { static_cast<void>(path()); }), HasSubstr("has no GID"));
  peer.localId = 0;
  EXPECT_THAT(errorOf([this] { static_cast<void>(path()); }), HasSubstr("has LID 0"));
  peer.ethernet = true;
  EXPECT_THAT(errorOf([this] { static_cast<void>(path()); }), HasSubstr("one side is on Ethernet"));
}

ConnectionInfo peerOf(const PartitionTable& partitions) {
  ConnectionInfo peer;
  peer.localId = 9;
  peer.gid[0] = 0xfe;
  peer.mtu = IBV_MTU_2048;
  peer.partitions = partitions;
  return peer;
}

TEST(EndpointOnInfiniBand, ConnectsInCommonPartitionWithGlobalHeader) {
  FakeVerbs verbs;
  verbs.partitions = {0x7fff, 0x8001};
  verbs.port.pkey_tbl_len = 2;
  verbs.port.flags = IBV_QPF_GRH_REQUIRED;
  Endpoint endpoint(verbs.library, {"fake0", 1, 0}, {});
  EXPECT_TRUE(verbs.modified.empty()) << "the partition is known only with the peer";
  endpoint.connect(peerOf({0x7fff, 0x9999, 0x8001}));
  ASSERT_EQ(verbs.modified.size(), 3U);
  EXPECT_EQ(verbs.modified[0].qp_state, IBV_QPS_INIT);
  EXPECT_EQ(verbs.modified[0].pkey_index, 1);
  EXPECT_EQ(verbs.modified[1].ah_attr.is_global, 1);
  EXPECT_EQ(verbs.modified[1].ah_attr.dlid, 9);
  EXPECT_EQ(verbs.modified[1].path_mtu, IBV_MTU_2048);
  EXPECT_EQ(endpoint.partition().value_or(PartitionEntry{}).key, 0x8001);
}

TEST(EndpointOnInfiniBand, ChangesNoQueuePairWithoutCommonPartition) {
  FakeVerbs verbs;
  verbs.port.pkey_tbl_len = 1;
  Endpoint endpoint(verbs.library, {"fake0", 1, 0}, {});
  EXPECT_THAT(errorOf([&] { endpoint.connect(peerOf({0x8001})); }),
              HasSubstr("no common partition"));
  EXPECT_TRUE(verbs.modified.empty());
}

TEST(EndpointOnInfiniBand, ReportsLid0BeforeItCreatesQueuePair) {
  FakeVerbs verbs;
  verbs.port.lid = 0;
  EXPECT_THAT(errorOf([&] {
                Endpoint(verbs.library, {"fake0", 1, 0}, {});
              }),
              HasSubstr("fake0 port 1 has LID 0"));
}

TEST(EndpointOnEthernet, UsesDefaultPartition) {
  FakeVerbs verbs;
  verbs.port.link_layer = IBV_LINK_LAYER_ETHERNET;
  verbs.port.pkey_tbl_len = 1;
  Endpoint endpoint(verbs.library, {"fake0", 1, 0}, {});
  ConnectionInfo peer = peerOf({});
  peer.ethernet = true;
  endpoint.connect(peer);
  EXPECT_EQ(verbs.modified.at(0).pkey_index, 0);
  EXPECT_EQ(verbs.modified.at(1).ah_attr.is_global, 1);
  EXPECT_FALSE(endpoint.partition());
}

}  // namespace
}  // namespace vfpass::probe
