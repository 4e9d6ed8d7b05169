#include "netlink/rdma_message.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/netlink.h>
#include <rdma/rdma_netlink.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "link_messages.hpp"
#include "netlink/netlink_message.hpp"
#include "vfpass/host/soft_roce_links.hpp"

namespace vfpass::host {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

using messages::attribute;
using messages::done;
using messages::message;
using messages::number;

std::string text(const std::string& value) { return {value.c_str(), value.size() + 1}; }

std::string ofNldev(int command, const std::string& payload) {
  return message(RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, command), payload);
}

std::string device(std::uint32_t index, const std::string& name) {
  return ofNldev(RDMA_NLDEV_CMD_GET, attribute(RDMA_NLDEV_ATTR_DEV_INDEX, number(index)) +
                                         attribute(RDMA_NLDEV_ATTR_DEV_NAME, text(name)));
}

std::string queuePairs(const std::string& entries) {
  return ofNldev(RDMA_NLDEV_CMD_RES_QP_GET,
                 attribute(RDMA_NLDEV_ATTR_DEV_INDEX, number(3)) +
                     attribute(RDMA_NLDEV_ATTR_RES_QP | NLA_F_NESTED, entries));
}

std::string entry(const std::string& owner) {
  return attribute(RDMA_NLDEV_ATTR_RES_QP_ENTRY | NLA_F_NESTED,
                   attribute(RDMA_NLDEV_ATTR_RES_LQPN, number(17)) + owner);
}

TEST(RdmaRequest, AdditionNamesDeviceTypeAndNetdev) {
  const std::string request = softRoceAddition("rxe0", "eth0");
  EXPECT_EQ(request.substr(sizeof(nlmsghdr)),
            attribute(RDMA_NLDEV_ATTR_DEV_NAME, text("rxe0")) +
                attribute(RDMA_NLDEV_ATTR_LINK_TYPE, text("rxe")) +
                attribute(RDMA_NLDEV_ATTR_NDEV_NAME, text("eth0")));
  nlmsghdr header{};
  std::memcpy(&header, request.data(), sizeof header);
  EXPECT_EQ(header.nlmsg_type, 0x1403);  // client 5, command 3
  EXPECT_EQ(header.nlmsg_flags, NLM_F_REQUEST | NLM_F_ACK);
  EXPECT_EQ(header.nlmsg_len, request.size());
}

TEST(RdmaRequest, RemovalUsesNumber) {
  EXPECT_EQ(rdmaLinkRemoval(7).substr(sizeof(nlmsghdr)),
            attribute(RDMA_NLDEV_ATTR_DEV_INDEX, number(7)));
}

TEST(RdmaDevices, ReadsSeveralDatagrams) {
  EXPECT_THAT(parseRdmaDevices(device(0, "mlx5_0") + device(4, "rxe0") + done()),
              ElementsAre(NumberedDevice{0, "mlx5_0"}, NumberedDevice{4, "rxe0"}));
}

TEST(RdmaDevices, SkipsMalformedMessages) {
  const std::string whole = device(4, "rxe0");
  for (std::size_t length = 0; length < whole.size(); ++length) {
    EXPECT_THAT(parseRdmaDevices(whole.substr(0, length)), IsEmpty()) << length;
  }
  EXPECT_THAT(parseRdmaDevices(ofNldev(RDMA_NLDEV_CMD_GET, "") + device(4, "rxe0")),
              ElementsAre(NumberedDevice{4, "rxe0"}));
  // A name without a terminating zero byte.
  EXPECT_THAT(parseRdmaDevices(
                  ofNldev(RDMA_NLDEV_CMD_GET, attribute(RDMA_NLDEV_ATTR_DEV_INDEX, number(1)) +
                                                  attribute(RDMA_NLDEV_ATTR_DEV_NAME, "rxe0"))),
              ElementsAre(NumberedDevice{1, "rxe0"}));
}

TEST(RdmaOwners, ReadsProcessesAndModules) {
  const std::string entries = entry(attribute(RDMA_NLDEV_ATTR_RES_KERN_NAME, text("ib_core"))) +
                              entry(attribute(RDMA_NLDEV_ATTR_RES_PID, number(4711))) + entry("");
  EXPECT_THAT(parseRdmaOwners(queuePairs(entries) + done(), RdmaResource::queuePair),
              ElementsAre(RdmaOwner{0, "ib_core"}, RdmaOwner{4711, ""}, RdmaOwner{}));
}

TEST(RdmaOwners, IgnoresOtherResources) {
  EXPECT_THAT(parseRdmaOwners(queuePairs(entry("")) + done(), RdmaResource::context), IsEmpty());
}

TEST(RdmaDump, ReportsError) {
  EXPECT_EQ(dumpError(device(0, "mlx5_0") + done()), 0);
  EXPECT_EQ(dumpError(done(-ENODEV)), ENODEV);
  EXPECT_EQ(dumpError(message(NLMSG_DONE, "")), 0);
  nlmsgerr refused{};
  refused.error = -EPERM;
  EXPECT_EQ(dumpError(message(NLMSG_ERROR, messages::bytes(refused))), EPERM);
  EXPECT_EQ(dumpError(device(0, "mlx5_0")), EBADMSG);
  EXPECT_EQ(dumpError(done(12)), EBADMSG);
  EXPECT_EQ(dumpError(""), EBADMSG);
}

class CapturedRdma : public testing::Test {
 protected:
  CapturedRdma() {
    std::string pattern = testing::TempDir() + "vfpass-rdma-XXXXXX";
    directory_ = ::mkdtemp(pattern.data());
  }
  ~CapturedRdma() override { std::filesystem::remove_all(directory_); }

  void file(const std::string& path, const std::string& content) {
    const auto target = directory_ / path;
    std::filesystem::create_directories(target.parent_path());
    std::ofstream(target) << content;
  }

  [[nodiscard]] std::vector<RdmaLink> links() const {
    return readRdmaLinks(Root(directory_), std::chrono::milliseconds(1000));
  }

  std::filesystem::path directory_;
};

TEST_F(CapturedRdma, RecognizesSoftRoceByParentWithoutDevice) {
  file("sys/class/infiniband/mlx5_0/device/vendor", "0x15b3\n");
  file("sys/class/infiniband/rxe0/parent", "eth0\n");
  file("sys/class/infiniband/odd0/parent", "eth1\n");
  file("sys/class/infiniband/odd0/device/vendor", "0x15b3\n");
  EXPECT_THAT(links(), ElementsAre(RdmaLink{"mlx5_0", false, "", std::nullopt},
                                   RdmaLink{"odd0", false, "", std::nullopt},
                                   RdmaLink{"rxe0", true, "eth0", std::nullopt}));
}

TEST_F(CapturedRdma, FindsNoLinksWithoutRdma) { EXPECT_THAT(links(), IsEmpty()); }

TEST_F(CapturedRdma, RejectsNetdevsUnsuitableForSoftRoce) {
  file("sys/class/net/eth0/type", "1\n");
  file("sys/class/net/eth0/uevent", "INTERFACE=eth0\nIFINDEX=2\n");
  file("sys/class/net/eth0.5/type", "1\n");
  file("sys/class/net/eth0.5/uevent", "DEVTYPE=vlan\nINTERFACE=eth0.5\n");
  file("sys/class/net/ib0/type", "32\n");
  const Root root(directory_);
  EXPECT_EQ(softRoceFault(root, "eth0"), "");
  EXPECT_THAT(softRoceFault(root, "eth1"), HasSubstr("no netdev eth1"));
  EXPECT_THAT(softRoceFault(root, "eth0.5"), HasSubstr("is a VLAN"));
  EXPECT_THAT(softRoceFault(root, "ib0"), HasSubstr("not an Ethernet device"));
}

}  // namespace
}  // namespace vfpass::host
