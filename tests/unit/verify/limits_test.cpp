#include "limits.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "judge_bandwidth.hpp"

namespace vfpass::verify {
namespace {

constexpr PcieLink gen3{8000, 16};
constexpr PcieLink gen4{16000, 16};
constexpr PcieLink gen5{32000, 16};

// The figures are those of docs/verify.md.
TEST(LimitsTest, ComputesHeaderOverhead) {
  EXPECT_EQ(headerBytes(Wire::roceV2OverIpv4, false), 82U);
  EXPECT_EQ(headerBytes(Wire::roceV2OverIpv4, true), 86U);
  EXPECT_EQ(headerBytes(Wire::roceV2OverIpv6, false), 102U);
  EXPECT_EQ(headerBytes(Wire::roceV1, false), 94U);
  EXPECT_NEAR(wireShare(Wire::roceV2OverIpv4, false, 4096), 0.980, 0.0005);
  EXPECT_NEAR(wireShare(Wire::roceV2OverIpv4, false, 2048), 0.962, 0.0006);
  EXPECT_NEAR(wireShare(Wire::roceV2OverIpv4, false, 1024), 0.926, 0.0005);
  EXPECT_NEAR(wireShare(Wire::infiniband, false, 4096), 0.994, 0.0005);
  EXPECT_EQ(headerBytes(Wire::infiniband, true), headerBytes(Wire::infiniband, false))
      << "InfiniBand has no VLANs";
}

TEST(LimitsTest, ComputesPcieDataRate) {
  const struct {
    PcieLink link;
    unsigned payload;
    double gigabits;
  } published[] = {{gen3, 256, 115}, {gen4, 256, 230}, {gen5, 256, 461},
                   {gen3, 64, 92},   {gen4, 64, 183},  {gen5, 64, 367}};
  for (const auto& each : published) {
    EXPECT_EQ(std::round(pcieGigabits(each.link, each.payload).value_or(0)), each.gigabits);
  }
  EXPECT_NEAR(pcieGigabits({5000, 8}, 256).value_or(0), 32 * 256.0 / 280, 0.01) << "8b/10b";
  EXPECT_FALSE(pcieGigabits({}, 256)) << "a link of unknown speed";
  EXPECT_FALSE(pcieGigabits({8000, 0}, 256));
}

TEST(LimitsTest, UsesLowerOfPortAndPcieLimit) {
  LimitInput input{100, Wire::roceV2OverIpv4, false, 4096, gen3, {}, false};
  auto limit = limitOf(input, Ends::apart);
  ASSERT_TRUE(limit);
  EXPECT_NEAR(limit->gigabits, 98.0, 0.1);
  EXPECT_EQ(limit->name, "the port after headers");
  input.nic.width = 8;
  limit = limitOf(input, Ends::apart);
  ASSERT_TRUE(limit);
  EXPECT_NEAR(limit->gigabits, 57.6, 0.1);
  EXPECT_EQ(limit->name, "PCI Express");
  input.nic = {};
  EXPECT_NEAR(limitOf(input, Ends::apart)->gigabits, 98.0, 0.1) << "only the port's limit is known";
  input.portGigabits = 0;
  EXPECT_FALSE(limitOf(input, Ends::apart));
}

TEST(LimitsTest, AccountsForPacketsSplitByRootComplex) {
  LimitInput input{400, Wire::infiniband, false, 4096, gen5, gen5, false};
  EXPECT_NEAR(limitOf(input, Ends::apart)->gigabits, 397.5, 0.1);
  input.splits = true;
  EXPECT_NEAR(limitOf(input, Ends::apart)->gigabits, 366.6, 0.1);
  input.gpu = gen4;
  EXPECT_NEAR(limitOf(input, Ends::apart)->gigabits, 183.3, 0.1) << "the GPU's link is narrower";
}

TEST(LimitsTest, HasLowerLimitInLoopback) {
  LimitInput input{400, Wire::roceV2OverIpv4, false, 4096, gen5, {}, false};
  EXPECT_NEAR(limitOf(input, Ends::loopback)->gigabits, 290, 0.5);
  EXPECT_EQ(limitOf(input, Ends::loopback)->name, "PCI Express, in loopback");
  input.portGigabits = 100;
  EXPECT_NEAR(limitOf(input, Ends::loopback)->gigabits, 98.0, 0.1)
      << "a slow port does not fill the link twice";
  input.portGigabits = 403;
  input.nic = {};
  EXPECT_NEAR(limitOf(input, Ends::loopback)->gigabits, 290, 0.5)
      << "without the PCI Express link, the port's limit is scaled instead";
}

TEST(LimitsTest, RateOfTheLeaseIsALimit) {
  Lease lease;
  RdmaPort port;
  HostSide host;
  host.portRate = 200000;
  host.link = gen4;
  vfOf(lease).settings.rate = Rate{0, 10000};
  const auto limit = limitFor(lease, port, host, "host", Ends::apart);
  ASSERT_TRUE(limit);
  EXPECT_EQ(limit->gigabits, 10);
  EXPECT_EQ(limit->name, "the rate limit of the lease");
  EXPECT_EQ(limitFor(lease, port, HostSide{}, "host", Ends::apart)->gigabits, 10);
  vfOf(lease).settings.rate = Rate{0, 900000};  // more than the link can carry
  EXPECT_NE(limitFor(lease, port, host, "host", Ends::apart)->name, "the rate limit of the lease");
  vfOf(lease).settings.rate = Rate{0, 0};  // none
  EXPECT_FALSE(limitFor(lease, port, HostSide{}, "host", Ends::apart));
}

}  // namespace
}  // namespace vfpass::verify
