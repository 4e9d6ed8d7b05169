#include <gtest/gtest.h>

#include "doctored_host.hpp"

namespace vfpass::doctor {
namespace {

class Dpu : public testing::Test, public DoctoredHost {
 protected:
  Dpu() { function(pf).device = 0xa2dc; }
  void eswitch(const std::string& answer) const {
    file("vfpass/devlink/0000:03:00.0/eswitch-mode", answer + "\n");
  }
  void engine(const std::string& current, const std::string& nextBoot) const {
    file("vfpass/firmware/0000:03:00.0",
         "INTERNAL_CPU_OFFLOAD_ENGINE " + current + " " + nextBoot + "\n");
  }
};

TEST_F(Dpu, IsWaivedForConnectX) {
  function(pf).device = 0x1021;
  EXPECT_EQ(outcome("dpu-mode"), Outcome::waived);
}

TEST_F(Dpu, RecognizesEveryBlueField) {
  for (const std::uint16_t device :
       std::initializer_list<std::uint16_t>{0xa2d2, 0xa2d6, 0xa2dc, 0xa2df}) {
    function(pf).device = device;
    EXPECT_EQ(outcome("dpu-mode"), Outcome::notObservable) << device;
  }
}

TEST_F(Dpu, RequiresNicModeWhereDriverDeniesEswitch) {
  eswitch("denied");
  const Finding found = finding("dpu-mode");
  EXPECT_EQ(found.outcome, Outcome::failed);
  EXPECT_EQ(found.seen, "DPU mode: the driver denies the host access to the embedded switch");
  EXPECT_EQ(found.remedy,
            "mstconfig -d 0000:03:00.0 set INTERNAL_CPU_OFFLOAD_ENGINE=1, then power-cycle the "
            "machine  # NIC mode");
  EXPECT_EQ(outcome("eswitch"), Outcome::notObservable);
  eswitch("legacy");
  EXPECT_EQ(outcome("dpu-mode"), Outcome::passed);
}

TEST_F(Dpu, JudgesByFirmwareWithoutDevlink) {
  engine("ENABLED(0)", "ENABLED(0)");
  EXPECT_EQ(finding("dpu-mode").seen, "DPU mode: INTERNAL_CPU_OFFLOAD_ENGINE ENABLED(0)");
  EXPECT_EQ(outcome("dpu-mode"), Outcome::failed);
  engine("ENABLED(0)", "DISABLED(1)");
  EXPECT_EQ(finding("dpu-mode").remedy, "power-cycle the machine");
  engine("DISABLED(1)", "DISABLED(1)");
  EXPECT_EQ(outcome("dpu-mode"), Outcome::passed);
  engine("DISABLED(7)", "x");
  EXPECT_EQ(outcome("dpu-mode"), Outcome::notObservable);
}

TEST_F(Dpu, LetsFirmwareDecideWhereDriverDoesNotSupportEswitch) {
  eswitch("unsupported");
  EXPECT_EQ(outcome("dpu-mode"), Outcome::notObservable);
  EXPECT_THAT(finding("dpu-mode").seen, testing::HasSubstr("as in DPU mode"));
  engine("ENABLED(0)", "ENABLED(0)");
  EXPECT_EQ(outcome("dpu-mode"), Outcome::failed);
  engine("DISABLED(1)", "DISABLED(1)");
  EXPECT_EQ(outcome("dpu-mode"), Outcome::passed);
}

TEST_F(Dpu, NamesAllSettingsOfBlueField2) {
  function(pf).device = 0xa2d6;
  eswitch("denied");
  EXPECT_THAT(finding("dpu-mode").remedy,
              testing::HasSubstr("INTERNAL_CPU_ESWITCH_MANAGER=1 INTERNAL_CPU_IB_VPORT0=1"));
}

}  // namespace
}  // namespace vfpass::doctor
