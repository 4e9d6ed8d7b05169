#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "host_observer.hpp"
#include "hosts/topology_builder.hpp"

namespace vfpass::commands {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

PciAddress at(const char* address) { return *parsePciAddress(address); }

/// A host with one NIC, one GPU below its switch and one in the other socket; both GPUs and a VF
/// are leased. In the guest, `gpu0` is behind the root port with index 2.
class LeasedGpusTest : public testing::Test {
 protected:
  LeasedGpusTest() {
    const auto near = builder.hostBridge("pci0000:00", 0);
    const auto far = builder.hostBridge("pci0000:80", 1);
    builder.pf("0000:01:00.0", "mlx5_0", near);
    builder.gpu("0000:02:00.0", near);
    builder.gpu("0000:81:00.0", far);
    machine.machine = "pc-q35-7.2";
    machine.controllers.resize(2);
    machine.controllers[0].model = "pcie-root";
    machine.controllers[1].index = 2;
    machine.controllers[1].model = "pcie-root-port";
    machine.controllers[1].address = at("0000:00:04.0");
    machine.passed = {{at("0000:02:00.0"), at("0000:02:00.0"), "gpu0"}};
    leases = {function("gpu0", "0000:02:00.0"), function("gpu1", "0000:81:00.0"), vf()};
  }

  static Lease function(const std::string& entry, const char* address) {
    Lease lease;
    lease.part = LeasedFunction{};
    lease.entry = entry;
    lease.pf = lease.device = at(address);
    lease.state = LeaseState::running;
    return lease;
  }
  static Lease vf() {
    Lease lease;
    lease.entry = "rail0";
    lease.pf = at("0000:01:00.0");
    lease.device = at("0000:01:00.2");
    lease.state = LeaseState::running;
    return lease;
  }

  hosts::TopologyBuilder builder;
  GuestMachine machine;
  std::vector<Lease> leases;
};

TEST_F(LeasedGpusTest, HasPlaceInGuestAndDistanceToEachVf) {
  const auto gpus = leasedGpus(leases, machine, builder.topology);
  ASSERT_THAT(gpus, SizeIs(2));
  EXPECT_EQ(gpus[0].entry, "gpu0");
  EXPECT_THAT(gpus[0].guestPath, ElementsAre(at("0000:00:04.0"), at("0000:02:00.0")));
  EXPECT_EQ(gpus[0].paths.at("rail0").distance, "PHB");
  EXPECT_EQ(gpus[1].paths.at("rail0").distance, "SYS");
  EXPECT_THAT(gpus[1].guestPath, IsEmpty()) << "not in the domain XML";
}

TEST_F(LeasedGpusTest, LeavesOutFunctionsThatAreNoGpuOrNotRunning) {
  leases[0].state = LeaseState::reserved;
  leases[1].device = leases[1].pf = at("0000:01:00.0");
  EXPECT_THAT(leasedGpus(leases, machine, builder.topology), IsEmpty());
}

}  // namespace

}  // namespace vfpass::commands
