#include "rdma/rdma_devices.hpp"

#include <gmock/gmock.h>

namespace vfpass::probe {
namespace {

const std::string local = "fe80:0000:0000:0000:5054:00ff:fe12:3456";
const std::string global = "2001:0db8:0000:0000:0000:0000:0000:0001";
const std::string mapped = "0000:0000:0000:0000:0000:ffff:c0a8:640a";
const std::string unused = "0000:0000:0000:0000:0000:0000:0000:0000";

TEST(GidChoice, PrefersRoceVersion2WithIpv4Address) {
  const std::vector<GidEntry> table{
      {0, local, "IB/RoCE v1", "eth0"},  {1, local, "RoCE v2", "eth0"},
      {2, mapped, "IB/RoCE v1", "eth0"}, {3, mapped, "RoCE v2", "eth0"},
      {4, global, "RoCE v2", "eth0"},    {5, mapped, "RoCE v2", "eth0.7"}};
  EXPECT_EQ(recommendedGid(table, true), 3);
}

TEST(GidChoice, PrefersGlobalToLinkLocalAddress) {
  EXPECT_EQ(recommendedGid({{1, local, "RoCE v2", ""}, {5, global, "RoCE v2", ""}}, true), 5);
}

TEST(GidChoice, PrefersVersionToAddressType) {
  EXPECT_EQ(recommendedGid({{1, local, "RoCE v2", ""}, {2, mapped, "IB/RoCE v1", ""}}, true), 1);
}

TEST(GidChoice, ChoosesFirstOnInfiniBand) {
  EXPECT_EQ(recommendedGid({{0, local, "IB/RoCE v1", ""}, {1, mapped, "IB/RoCE v1", ""}}, false),
            0);
}

TEST(GidChoice, SkipsUnusedEntries) {
  EXPECT_EQ(recommendedGid({{0, unused, "RoCE v2", ""}, {1, local, "RoCE v2", ""}}, true), 1);
  EXPECT_EQ(recommendedGid({{0, unused, "RoCE v2", ""}}, true), std::nullopt);
  EXPECT_EQ(recommendedGid({}, true), std::nullopt);
}

}  // namespace
}  // namespace vfpass::probe
