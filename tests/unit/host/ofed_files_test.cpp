#include "sriov/vf_port.hpp"

#include <gtest/gtest.h>

#include <cerrno>

#include "simulated_kernel.hpp"

namespace vfpass::host {
namespace {

constexpr std::chrono::milliseconds fileDeadline{60};
constexpr Guid assignedGuid{0x0211223344556677};

VfRequest request(unsigned index, const std::function<void(VfSettings&)>& fill) {
  VfRequest made{index, {}};
  fill(made.settings);
  return made;
}
VfRequest nodeGuidOf(unsigned index) {
  return request(index, [](VfSettings& settings) { settings.nodeGuid = assignedGuid; });
}
VfRequest portGuidOf(unsigned index) {
  return request(index, [](VfSettings& settings) { settings.portGuid = assignedGuid; });
}

// Netlink that returns a given table and answers every request with one error.
class RefusingNetlink final : public VfPort {
 public:
  VfTable table;
  int error = EOPNOTSUPP;
  unsigned requests = 0;

  VfTable read() override { return table; }
  Acknowledgement set(const std::vector<VfRequest>& sent) override {
    requests += static_cast<unsigned>(sent.size());
    return {error, ""};
  }
};

class OfedFilesTest : public testing::Test {
 protected:
  OfedFilesTest() {
    tree_.pf(2);
    tree_.vf(0);
    files("0", "00:00:00:00:00:00:00:00", "00:00:00:00:00:00:00:00", "Down");
  }
  void files(const std::string& index, const std::string& node, const std::string& port,
             const std::string& policy) {
    const std::string directory = tree_.folderOf("0000:01:00.0") + "/sriov/" + index;
    tree_.file(directory + "/node", node + "\n");
    tree_.file(directory + "/port", port + "\n");
    tree_.file(directory + "/policy", policy + "\n");
  }
  std::string content(const std::string& file) const {
    return tree_.content(tree_.folderOf("0000:01:00.0") + "/sriov/0/" + file);
  }

  hosts::SysfsTree tree_;
  Root root_{tree_.path()};
  SimulatedKernel kernel_{tree_};
  RefusingNetlink netlink_;
  OfedPort port_{&netlink_, root_, kernel_, *parsePciAddress("0000:01:00.0"), fileDeadline};
};

TEST_F(OfedFilesTest, WritesAttributesThatNetlinkDoesNotSupport) {
  EXPECT_EQ(port_.set({nodeGuidOf(0)}).error, 0);
  EXPECT_EQ(content("node"), "02:11:22:33:44:55:66:77");
  EXPECT_EQ(port_.set({portGuidOf(0)}).error, 0);
  EXPECT_EQ(content("port"), "02:11:22:33:44:55:66:77");
  EXPECT_EQ(
      port_.set({request(0, [](auto& settings) { settings.linkState = LinkState::automatic; })})
          .error,
      0);
  EXPECT_EQ(content("policy"), "Follow");
  EXPECT_EQ(port_.read().at(0).portGuid, assignedGuid);
}

// ib_ipoib may not be loaded.
TEST_F(OfedFilesTest, NeedNoNetdev) {
  OfedPort port(nullptr, root_, kernel_, *parsePciAddress("0000:01:00.0"), fileDeadline);
  EXPECT_EQ(port.set({nodeGuidOf(0), portGuidOf(0)}).error, EOPNOTSUPP);
  EXPECT_EQ(port.set({nodeGuidOf(0)}).error, 0);
  EXPECT_EQ(port.read().at(0).nodeGuid, assignedGuid);
  EXPECT_EQ(port.read().at(0).linkState, LinkState::disable);
}

TEST_F(OfedFilesTest, DoesNotWriteFilesWhenNetlinkWorks) {
  netlink_.error = 0;
  EXPECT_EQ(port_.set({nodeGuidOf(0)}).error, 0);
  EXPECT_TRUE(kernel_.log.empty());
  EXPECT_EQ(netlink_.requests, 1U);
}

TEST_F(OfedFilesTest, ReturnsOtherNetlinkErrors) {
  netlink_.error = EINVAL;
  EXPECT_EQ(port_.set({nodeGuidOf(0)}).error, EINVAL);
  EXPECT_TRUE(kernel_.log.empty());
}

TEST_F(OfedFilesTest, RefusesSeveralAttributesAtOnce) {
  EXPECT_EQ(
      port_
          .set({request(
              0, [](auto& settings) { settings.nodeGuid = settings.portGuid = assignedGuid; })})
          .error,
      EOPNOTSUPP);
  EXPECT_TRUE(kernel_.log.empty());
}

TEST_F(OfedFilesTest, ReturnsNetlinkErrorWithoutFiles) {
  EXPECT_EQ(port_.set({nodeGuidOf(1)}).error, EOPNOTSUPP);
  EXPECT_EQ(port_.set({request(0, [](auto& settings) { settings.trust = true; })}).error,
            EOPNOTSUPP);
  EXPECT_TRUE(kernel_.log.empty());
}

TEST_F(OfedFilesTest, ReturnsErrorOfFailedWrite) {
  kernel_.fileErrors["node"] = EIO;
  EXPECT_EQ(port_.set({nodeGuidOf(0)}).error, EIO);
}

TEST_F(OfedFilesTest, ReadsAttributesMissingFromNetlink) {
  files("0", toString(assignedGuid), "00:00:00:00:00:00:00:00", "Up");
  files("unbind", toString(assignedGuid), toString(assignedGuid), "Up");
  netlink_.table[0].linkState = LinkState::disable;
  const VfTable table = port_.read();
  ASSERT_EQ(table.size(), 1U) << "names that are not numbers are ignored";
  EXPECT_EQ(table.at(0).nodeGuid, assignedGuid);
  EXPECT_FALSE(table.at(0).portGuid) << "zero means never set";
  EXPECT_EQ(table.at(0).linkState, LinkState::disable) << "netlink takes precedence";
}

}  // namespace
}  // namespace vfpass::host
