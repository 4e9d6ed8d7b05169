#include "pf_baseline.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hosts/topology_builder.hpp"
#include "unit/values.hpp"
#include "vfpass/error.hpp"

namespace vfpass::commands {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

Holder holder(HolderKind kind, const char* device, const std::string& description) {
  return {kind, at(device), description, "", std::nullopt};
}

TEST(FunctionsOfCardTest, AreAllPortsWithoutVfs) {
  hosts::TopologyBuilder builder;
  const auto bridge = builder.hostBridge("pci0000:00", 0);
  const auto first = builder.pf("0000:03:00.0", "mlx5_0", bridge);
  builder.pf("0000:03:00.1", "mlx5_1", bridge);
  const auto vf = builder.pf("0000:03:00.2", "mlx5_2", bridge);
  builder.topology.functions[vf].physicalFunction = builder.topology.functions[first].address;
  builder.pf("0000:04:00.0", "mlx5_3", bridge);
  builder.gpu("0000:05:00.0", bridge);
  EXPECT_THAT(functionsOfCard(builder.topology, at("0000:03:00.1")),
              ElementsAre(at("0000:03:00.0"), at("0000:03:00.1")));
}

TEST(AddUsersTest, KeepsUsersOfEveryLookOnce) {
  Baseline baseline;
  addUsers([] { return std::vector<Holder>{}; }, baseline);
  EXPECT_THAT(baseline.users, IsEmpty());
  const auto guest = holder(HolderKind::vfio, "0000:03:00.2", "qemu (pid 4711) has it open");
  addUsers(
      [&] {
        return std::vector{guest, holder(HolderKind::netdev, "0000:03:00.0", "up")};
      },
      baseline);
  addUsers(
      [&] {
        return std::vector{guest, holder(HolderKind::rdma, "0000:03:00.1", "ib_send")};
      },
      baseline);
  addUsers([] { return std::vector<Holder>{}; }, baseline);
  EXPECT_THAT(baseline.users,
              ElementsAre("0000:03:00.2: qemu (pid 4711) has it open", "0000:03:00.1: ib_send"));
  EXPECT_THAT(baseline.unseenUsers, IsEmpty());
}

TEST(AddUsersTest, WhatCannotBeSeenIsNotNobody) {
  Baseline baseline;
  addUsers([] { return std::vector{holder(HolderKind::unknown, "0000:03:00.0", "cannot tell")}; },
           baseline);
  addUsers([]() -> std::vector<Holder> { throw Error("cannot read /proc", ""); }, baseline);
  EXPECT_THAT(baseline.users, IsEmpty());
  EXPECT_THAT(baseline.unseenUsers, ElementsAre("0000:03:00.0: cannot tell", "cannot read /proc"));
}

TEST(AddUsersTest, ListIsBounded) {
  Baseline baseline;
  addUsers(
      [] {
        std::vector<Holder> many;
        for (int number = 0; number < 100; ++number) {
          many.push_back(holder(HolderKind::rdma, "0000:03:00.0", std::to_string(number)));
        }
        return many;
      },
      baseline);
  EXPECT_THAT(baseline.users, SizeIs(16));
}

}  // namespace
}  // namespace vfpass::commands
