#include "host_policy.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "vfpass/error.hpp"

namespace vfpass::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

PhysicalFunction pfWithVfs(unsigned count) {
  PhysicalFunction pf;
  pf.address = {0, 0x3b, 0, 0};
  pf.netdev = "ens1f0np0";
  pf.serial = "MT1";
  pf.totalVfs = 8;
  for (unsigned i = 0; i < count; ++i) {
    VirtualFunction vf;
    vf.index = i;
    vf.address = {0, 0x3b, 0, static_cast<std::uint8_t>(i + 1)};
    vf.driver = "mlx5_core";
    pf.vfs.push_back(vf);
  }
  return pf;
}

Lease leaseOf(const PhysicalFunction& pf, unsigned index) {
  Lease lease;
  lease.domainName = "train\n0";
  lease.pf = pf.address;
  lease.vfIndex = index;
  return lease;
}

template <typename Call>
void expectError(ExitCode code, const std::string& words, Call call) {
  try {
    call();
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code);
    EXPECT_THAT(error.what(), HasSubstr(words));
    EXPECT_FALSE(error.remedy().empty());
  }
}

TEST(VfHolders, IdleVfsOnTheHostDriverHoldNothing) {
  PhysicalFunction pf = pfWithVfs(2);
  pf.vfs[0].netdevs = {{"ens1f0v0", 5, false, false}};
  EXPECT_THAT(vfHolders(pf, {}), IsEmpty());
}

TEST(VfHolders, NamesEverybodyWhoWouldBeHurt) {
  PhysicalFunction pf = pfWithVfs(6);
  pf.vfs[0].netdevs = {{"up0", 5, true, false}};
  pf.vfs[1].netdevs = {{"slave0", 6, false, true}};
  pf.vfs[2].driver = "vfio-pci";
  pf.vfs[3].driver = "mlx5_vfio_pci";
  pf.vfs[4].vfioInUse = true;
  EXPECT_THAT(vfHolders(pf, {leaseOf(pf, 5)}),
              ElementsAre(HasSubstr("VF 5 is leased to train\\x0a0"), HasSubstr("up0 is up"),
                          HasSubstr("slave0 is in a bond"), HasSubstr("is on vfio-pci"),
                          HasSubstr("is on mlx5_vfio_pci"), HasSubstr("held open")));
}

TEST(VfHolders, LeasesOfOtherPfsDoNotCount) {
  const PhysicalFunction pf = pfWithVfs(1);
  Lease other = leaseOf(pf, 0);
  other.pf.function = 1;
  EXPECT_THAT(vfHolders(pf, {other}), IsEmpty());
}

TEST(NameHolders, IsCutWithTheRestCounted) {
  EXPECT_EQ(nameHolders({"a", "b"}), "a, b");
  EXPECT_EQ(nameHolders({"a", "b", "c", "d", "e", "f"}), "a, b, c, d, and 2 more");
}

TEST(FittingPolicy, AnotherCardIsRefused) {
  PfPolicy policy;
  policy.serial = "MT1";
  EXPECT_NO_THROW(requireFittingPolicy(pfWithVfs(0), policy));
  policy.serial = "MT2";
  expectError(ExitCode::refused, "MT2", [&] { requireFittingPolicy(pfWithVfs(0), policy); });
  PhysicalFunction silent = pfWithVfs(0);
  silent.serial.clear();
  expectError(ExitCode::refused, "no serial", [&] { requireFittingPolicy(silent, policy); });
}

TEST(FittingPolicy, MoreVfsThanThePfHasIsBadInput) {
  PfPolicy policy;
  policy.vfCount = 8;
  EXPECT_NO_THROW(requireFittingPolicy(pfWithVfs(0), policy));
  policy.vfCount = 9;
  expectError(ExitCode::badInput, "9 VFs are wanted",
              [&] { requireFittingPolicy(pfWithVfs(0), policy); });
}

TEST(FittingPolicy, AnMtuNeedsANetdev) {
  PhysicalFunction bare = pfWithVfs(0);
  bare.netdev.clear();
  PfPolicy policy;
  EXPECT_NO_THROW(requireFittingPolicy(bare, policy));
  policy.mtu = 9000;
  expectError(ExitCode::failed, "no netdev", [&] { requireFittingPolicy(bare, policy); });
}

TEST(RoomForLeases, ALeasedVfMustStillBeThere) {
  const PhysicalFunction pf = pfWithVfs(0);
  EXPECT_NO_THROW(requireRoomForLeases(pf, 4, {leaseOf(pf, 3)}));
  expectError(ExitCode::refused, "would lose VF 4",
              [&] { requireRoomForLeases(pf, 4, {leaseOf(pf, 4)}); });
}

TEST(OpenOperation, StopsChangesOfItsOwnPfOnly) {
  const PhysicalFunction pf = pfWithVfs(0);
  state::Operation operation;
  operation.domainName = "train0";
  operation.steps.push_back({Step{CreateVfs{pf.address, 4, false}, {}, "", false}});
  expectError(ExitCode::refused, "train0", [&] { requireNoOpenOperation(pf, {operation}); });
  PhysicalFunction other = pf;
  other.address.function = 1;
  EXPECT_NO_THROW(requireNoOpenOperation(other, {operation}));
}

}  // namespace
}  // namespace vfpass::cli
