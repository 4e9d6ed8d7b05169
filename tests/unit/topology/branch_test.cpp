#include "vfpass/topology/distance.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hosts/topology_builder.hpp"

namespace vfpass::topology {
namespace {

using Role = FunctionRole;
using testing::ElementsAre;
using testing::IsEmpty;

TEST(Branch, OmitsPortsThatOnlyConnect) {
  hosts::TopologyBuilder machine;
  const auto bridge = machine.hostBridge("pci0000:00", 0);
  const auto empty = machine.hostBridge("pci0000:80", 1);
  const auto port = machine.function(Role::rootPort, "0000:00:01.0", bridge);
  const auto up = machine.function(Role::upstreamPort, "0000:01:00.0", bridge, port);
  const auto down = machine.function(Role::downstreamPort, "0000:02:00.0", bridge, up);
  const auto second = machine.function(Role::downstreamPort, "0000:02:01.0", bridge, up);
  const auto gpu = machine.gpu("0000:03:00.0", bridge, down);
  const auto nic = machine.pf("0000:04:00.0", "mlx5_0", bridge, second);
  const auto alone = machine.gpu("0000:05:00.0", bridge);
  static_cast<void>(machine.function(Role::other, "0000:81:00.0", empty));
  const auto branches =
      branchesOf(machine.topology, {[](const Device& function) {
                   return function.role == Role::gpu || function.role == Role::nic;
                 }});
  ASSERT_EQ(branches.size(), 2U);
  EXPECT_THAT(branches[0].devices, ElementsAre(alone));
  ASSERT_EQ(branches[0].branches.size(), 1U);
  EXPECT_EQ(branches[0].branches[0].port, up);
  EXPECT_THAT(branches[0].branches[0].devices, ElementsAre(gpu, nic));
  EXPECT_THAT(branches[0].branches[0].branches, IsEmpty());
  EXPECT_THAT(branches[1].devices, IsEmpty());
}

}  // namespace
}  // namespace vfpass::topology
