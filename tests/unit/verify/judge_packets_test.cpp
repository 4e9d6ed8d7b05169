#include "judge_guest.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace vfpass::verify {
namespace {

using testing::HasSubstr;
using testing::Not;
using Json = nlohmann::json;

Json express(int payload, int readRequest) {
  return {
      {"max_payload", payload}, {"max_payload_supported", 512}, {"max_read_request", readRequest}};
}

// In a VF the register is reserved and reads as 128.
GuestView guest(const Json& vf = express(256, 128)) {
  return readGuestView(
      {{"pci",
        {{{"address", "0000:01:00.0"}, {"express", vf}},
         {{"address", "0000:05:00.0"},
          {"express", express(256, 512)},
          {"path", "/sys/devices/pci0000:00/0000:00:02.0/0000:05:00.0"}},
         {{"address", "0000:06:00.0"}, {"express", express(128, 128)}}}},
       {"gpus", {{"devices", {{{"pci", "00000000:05:00.0"}}, {{"pci", "00000000:06:00.0"}}}}}}});
}

const std::vector<LeasedGpu> leasedGpus{
    {"gpu0", {*parsePciAddress("0000:00:02.0"), *parsePciAddress("0000:09:00.0")}, {}}};

Finding judgedPackets(unsigned readRequest, unsigned payload, unsigned possible = 512,
                      std::uint16_t vendor = 0x15b3) {
  Lease lease;
  lease.entry = "rail0";
  lease.pf = *parsePciAddress("0000:3b:00.0");
  HostSide host;
  host.vendor = vendor;
  host.packets = HostPackets{{payload, 512, readRequest}, possible};
  return judgePackets(lease, "0000:01:00.0", guest(), host, leasedGpus).value_or(Finding{});
}

TEST(JudgePacketsTest, ShowsBothSides) {
  const Finding found = judgedPackets(4096, 512);
  EXPECT_EQ(found.key, "pcie-packets");
  EXPECT_EQ(found.outcome, Outcome::passed);
  EXPECT_EQ(found.observer, Observer::host);
  EXPECT_EQ(found.seen,
            "PF: MaxReadReq 4096, MaxPayload 512 of 512 possible; in the guest: VF MaxPayload 256, "
            "MaxReadReq that of the PF; GPU 00000000:05:00.0 MaxReadReq 512, MaxPayload 256")
      << "not the GPU that vfpass did not lease";
}

TEST(JudgePacketsTest, SmallReadRequestsOfConnectxAreWarning) {
  EXPECT_EQ(judgedPackets(512, 512).outcome, Outcome::passed) << "what the kernel leaves";
  const Finding found = judgedPackets(256, 512);
  EXPECT_EQ(found.outcome, Outcome::warning);
  EXPECT_THAT(found.remedy, HasSubstr("setpci -s 0000:3b:00.0 CAP_EXP+8.w=5000:7000"));
  EXPECT_THAT(found.remedy, Not(HasSubstr("pcie_bus_safe")));
  EXPECT_EQ(judgedPackets(256, 512, 512, 0x8086).outcome, Outcome::passed)
      << "no source for others";
}

TEST(JudgePacketsTest, PayloadIsComparedWithWhatAllSupport) {
  EXPECT_THAT(judgedPackets(4096, 256).remedy, HasSubstr("pcie_bus_safe"));
  EXPECT_EQ(judgedPackets(4096, 256).outcome, Outcome::warning);
  EXPECT_EQ(judgedPackets(4096, 256, 256).outcome, Outcome::passed);
}

TEST(JudgePacketsTest, RelaxedOrderingThatIsOffIsWarning) {
  Lease lease;
  lease.entry = "rail0";
  lease.pf = *parsePciAddress("0000:3b:00.0");
  HostSide host;
  host.vendor = 0x15b3;
  host.packets = HostPackets{{512, 512, 4096, false}, 512};
  const auto found = judgePackets(lease, "0000:01:00.0", guest(), host, leasedGpus);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->outcome, Outcome::warning);
  EXPECT_THAT(found->seen, HasSubstr("Relaxed Ordering off"));
  EXPECT_THAT(found->remedy, HasSubstr("setpci -s 0000:3b:00.0 CAP_EXP+8.w=0010:0010"));
  host.vendor = 0x8086;
  EXPECT_EQ(judgePackets(lease, "0000:01:00.0", guest(), host, leasedGpus)->outcome,
            Outcome::passed);
}

TEST(JudgePacketsTest, UnknownHasNotPassed) {
  const Lease lease;
  EXPECT_EQ(judgePackets(lease, "0000:01:00.0", guest(), {}, leasedGpus)->outcome, Outcome::waived);
  EXPECT_FALSE(judgePackets(lease, "0000:01:00.0", {}, {}, leasedGpus)) << "an older probe";
  for (const Json& odd : {Json("text"), express(-1, 512), express(1 << 20, 512), Json(nullptr)}) {
    EXPECT_FALSE(guest(odd).services.at("0000:01:00.0").packets) << odd;
  }
  const std::vector<LeasedGpu> many(1000, leasedGpus[0]);
  EXPECT_LT(judgePackets(lease, "", guest(), {}, many)->seen.size(), 1000U);
}

}  // namespace
}  // namespace vfpass::verify
