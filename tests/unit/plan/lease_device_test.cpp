#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fake/fake_kernel.hpp"
#include "vfpass/plan/lease_device.hpp"

namespace vfpass::plan {
namespace {

using testing::HasSubstr;

class LeasePlaceTest : public testing::Test {
 protected:
  LeasePlaceTest() {
    PhysicalFunction& added = kernel.addPf("0000:01:00.0", "ens1f0np0", 8, 4);
    added.serial = "MT1";
    lease.pf = added.address;
    lease.pfPath = added.path;
    lease.pfSerial = "MT1";
    vfOf(lease).index = 2;
    lease.device = added.vfs[2].address;
    Device& gpu = kernel.addFunction("0000:3a:00.0", "nvidia");
    gpu.serial = "G1";
    function.part = LeasedFunction{};
    function.pf = function.device = gpu.address;
    function.pfPath = gpu.path;
    function.pfSerial = "G1";
  }

  PhysicalFunction& pf() { return kernel.pfs.begin()->second; }
  Device& gpu() { return kernel.functions.begin()->second; }
  std::string fault(const Lease& of) { return placeFault(kernel.inventory(), {of}, of); }

  fake::FakeKernel kernel;
  Lease lease;
  Lease function;
};

TEST_F(LeasePlaceTest, AcceptsTheSameCardWithAndWithoutVfs) {
  EXPECT_EQ(fault(lease), "");
  pf().vfs.clear();
  EXPECT_EQ(fault(lease), "");
  EXPECT_EQ(fault(function), "");
}

TEST_F(LeasePlaceTest, RejectsAnotherCard) {
  pf().serial = "MT2";
  EXPECT_THAT(fault(lease), HasSubstr("has serial number 'MT2', the lease is for 'MT1'"));
  pf().serial = "";
  EXPECT_THAT(fault(lease), HasSubstr("has serial number ''"));
  pf().serial = "MT1";
  pf().path = "elsewhere";
  EXPECT_THAT(fault(lease), HasSubstr("is at elsewhere"));
  kernel.pfs.clear();
  EXPECT_THAT(fault(lease), HasSubstr("does not exist"));
}

TEST_F(LeasePlaceTest, RejectsVfAtAnotherAddressOrBeyondLimit) {
  lease.device.function = 7;
  EXPECT_THAT(fault(lease), HasSubstr("VF 2 of PF 0000:01:00.0 is at 0000:01:00.3"));
  pf().vfs.clear();
  EXPECT_THAT(fault(lease), HasSubstr("is at 0000:01:00.3"));
  vfOf(lease).index = 8;
  EXPECT_THAT(fault(lease), HasSubstr("has no VF 8"));
}

TEST_F(LeasePlaceTest, RejectsReplacedOrUnleasableFunction) {
  gpu().serial = "G2";
  EXPECT_THAT(fault(function), HasSubstr("has serial number 'G2'"));
  gpu().serial = "G1";
  gpu().bootVga = true;
  EXPECT_THAT(fault(function), HasSubstr("the host's boot display"));
  gpu().bootVga = false;
  gpu().vfCount = 4;
  EXPECT_THAT(fault(function), HasSubstr("is a PF with 4 VFs"));
  gpu().vfCount = 0;
  function.device.bus = 1;
  EXPECT_THAT(fault(function), HasSubstr("does not exist"));
}

}  // namespace

}  // namespace vfpass::plan
