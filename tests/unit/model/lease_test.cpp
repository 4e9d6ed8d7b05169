#include "vfpass/lease.hpp"

#include <gtest/gtest.h>

#include "vfpass/inventory.hpp"

namespace vfpass {
namespace {

constexpr PciAddress card{0, 0x3b, 0, 0};
constexpr PciAddress otherCard{0, 0x5e, 0, 0};

Lease leasedVf(unsigned index) {
  Lease lease;
  lease.pf = card;
  vfOf(lease).index = index;
  return lease;
}

Lease leasedFunction() {
  Lease lease;
  lease.part = LeasedFunction{};
  lease.pf = lease.device = card;
  return lease;
}

TEST(LeaseKinds, FunctionIsNotTakenForVfOfItsAddress) {
  EXPECT_TRUE(isVfOf(leasedVf(1), card));
  EXPECT_FALSE(isVfOf(leasedVf(1), otherCard));
  EXPECT_FALSE(isVfOf(leasedFunction(), card));
  EXPECT_TRUE(isVfOf(leasedVf(1), card, 1));
  EXPECT_FALSE(isVfOf(leasedVf(1), card, 0));
  EXPECT_FALSE(isVfOf(leasedFunction(), card, 0)) << "its VF 0";
}

TEST(LeaseKinds, LeaseOfVfIsFoundByPfAndIndex) {
  const std::vector<Lease> leases{leasedFunction(), leasedVf(0), leasedVf(3)};
  EXPECT_EQ(leaseOfVf(leases, card, 0), &leases[1]);
  EXPECT_EQ(leaseOfVf(leases, card, 3), &leases[2]);
  EXPECT_EQ(leaseOfVf(leases, card, 1), nullptr);
  EXPECT_EQ(leaseOfVf(leases, otherCard, 0), nullptr);
}

TEST(LeaseKinds, EachKindCanBeSelected) {
  const std::vector<Lease> leases{leasedFunction(), leasedVf(0), leasedVf(3)};
  EXPECT_EQ(vfLeases(leases), (std::vector<Lease>{leasedVf(0), leasedVf(3)}));
  EXPECT_EQ(functionLeases(leases), (std::vector<Lease>{leasedFunction()}));
}

TEST(LeaseKinds, WholeFunctionConflictsWithItsVfButIsAnotherDevice) {
  EXPECT_TRUE(sameDevice(leasedFunction(), leasedVf(0)));
  EXPECT_FALSE(isForSameDevice(leasedFunction(), leasedVf(0)));
  EXPECT_TRUE(isForSameDevice(leasedVf(0), leasedVf(0)));
  EXPECT_FALSE(isForSameDevice(leasedVf(0), leasedVf(1)));
  EXPECT_TRUE(isForSameDevice(leasedFunction(), leasedFunction()));
}

TEST(LeaseKinds, FunctionHasNoPartOfAnInventorysPf) {
  Inventory inventory;
  inventory.pfs.emplace_back().address = card;
  inventory.pfs[0].vfs.resize(2);
  EXPECT_EQ(findPf(inventory, leasedVf(0)), &inventory.pfs[0]);
  EXPECT_EQ(findVf(inventory, leasedVf(1)), &inventory.pfs[0].vfs[1]);
  EXPECT_EQ(findVf(inventory, leasedVf(2)), nullptr);
  EXPECT_EQ(findPf(inventory, leasedFunction()), nullptr);
  EXPECT_EQ(findVf(inventory, leasedFunction()), nullptr);
}

}  // namespace
}  // namespace vfpass
