#include <gtest/gtest.h>

#include <cerrno>

#include "simulated_kernel.hpp"
#include "sriov/vf_port.hpp"
#include "vfpass/host/root.hpp"

namespace vfpass::host {
namespace {

constexpr std::chrono::milliseconds vectorDeadline{60};

// The netlink part: accepts everything.
class AcceptingNetlink final : public VfPort {
 public:
  VfTable table;
  std::vector<VfRequest> sent;
  int error = 0;

  VfTable read() override { return table; }
  Acknowledgement set(const std::vector<VfRequest>& requests) override {
    sent = requests;
    return {error, ""};
  }
};

// Configuration space with a capability list: MSI-X at 0x60, after a vendor-specific one.
std::string config(unsigned vectors) {
  std::string bytes(256, '\0');
  bytes[0x06] = 0x10;
  bytes[0x34] = 0x40;
  bytes[0x40] = 0x09;
  bytes[0x41] = 0x60;
  bytes[0x60] = 0x11;
  bytes[0x62] = static_cast<char>((vectors - 1) & 0xffU);
  bytes[0x63] = static_cast<char>((vectors - 1) >> 8U | 0x80U);  // enabled
  return bytes;
}

VfRequest request(unsigned index, std::uint16_t vectors) {
  VfRequest made{index, {}};
  made.settings.msixVectors = vectors;
  return made;
}

class VectorPortTest : public testing::Test {
 protected:
  VectorPortTest() {
    tree_.pf(2);
    for (const unsigned index : {0U, 1U}) {
      const std::string folder = tree_.folderOf(tree_.vf(index));
      tree_.file(folder + "/config", config(index == 0 ? 11 : 1000));
      tree_.file(folder + "/sriov_vf_msix_count", "");
    }
  }
  std::string written() const {
    return tree_.content(tree_.folderOf("0000:01:00.1") + "/sriov_vf_msix_count");
  }

  hosts::SysfsTree tree_;
  Root root_{tree_.path()};
  SimulatedKernel kernel_{tree_};
  AcceptingNetlink netlink_;
  VectorPort port_{netlink_, root_, kernel_, *parsePciAddress("0000:01:00.0"), vectorDeadline};
};

TEST_F(VectorPortTest, ReadsTheTableSize) {
  netlink_.table[0].trust = true;
  const VfTable table = port_.read();
  EXPECT_EQ(table.at(0).msixVectors, 11);
  EXPECT_EQ(table.at(0).trust, true);
  EXPECT_EQ(table.at(1).msixVectors, 1000);
}

// Without root the kernel returns 64 bytes.
TEST_F(VectorPortTest, DoesNotGuessWhatItCannotRead) {
  tree_.file(tree_.folderOf("0000:01:00.1") + "/config", config(11).substr(0, 64));
  EXPECT_EQ(port_.read().count(0), 0U);
}

TEST_F(VectorPortTest, WritesTheFileOfTheVf) {
  VfRequest both = request(0, 5);
  both.settings.trust = true;
  EXPECT_EQ(port_.set({both}).error, 0);
  EXPECT_EQ(written(), "5");
  ASSERT_EQ(netlink_.sent.size(), 1U);
  EXPECT_EQ(netlink_.sent[0].settings.trust, true);
  EXPECT_FALSE(netlink_.sent[0].settings.msixVectors);
}

TEST_F(VectorPortTest, SendsNothingElse) {
  EXPECT_EQ(port_.set({request(0, 5)}).error, 0);
  EXPECT_TRUE(netlink_.sent.empty());
}

TEST_F(VectorPortTest, DoesNotWriteWhatTheVfHas) {
  kernel_.fileErrors["sriov_vf_msix_count"] = EBUSY;
  EXPECT_EQ(port_.set({request(0, 11)}).error, 0);
  EXPECT_EQ(written(), "");
}

TEST_F(VectorPortTest, ReportsWhatTheKernelRefuses) {
  kernel_.fileErrors["sriov_vf_msix_count"] = EBUSY;
  EXPECT_EQ(port_.set({request(0, 5)}).error, EBUSY);
  EXPECT_EQ(port_.set({request(7, 5)}).error, ENODEV);
  tree_.remove(tree_.folderOf("0000:01:00.1") + "/sriov_vf_msix_count");
  EXPECT_EQ(port_.set({request(0, 5)}).error, EOPNOTSUPP);
}

// All VFs share the vectors of the PF.
TEST_F(VectorPortTest, FirstShrinksThenGrows) {
  tree_.remove(tree_.folderOf("0000:01:00.1") + "/sriov_vf_msix_count");
  EXPECT_EQ(port_.set({request(0, 500), request(1, 11)}).error, EOPNOTSUPP);
  EXPECT_EQ(tree_.content(tree_.folderOf(tree_.vf(1)) + "/sriov_vf_msix_count"), "11");
}

TEST_F(VectorPortTest, StopsAfterARefusalOfNetlink) {
  netlink_.error = EINVAL;
  VfRequest both = request(0, 5);
  both.settings.trust = true;
  EXPECT_EQ(port_.set({both}).error, EINVAL);
  EXPECT_EQ(written(), "");
}

}  // namespace
}  // namespace vfpass::host
