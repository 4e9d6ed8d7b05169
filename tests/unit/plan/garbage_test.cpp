#include "vfpass/plan/unused_leases.hpp"

#include <gtest/gtest.h>

namespace vfpass::plan {
namespace {

Lease lease(const std::string& name, bool persistent) {
  Lease lease;
  lease.entry = name;
  lease.persistent = persistent;
  return lease;
}

std::size_t garbageOf(const Lease& lease, const DomainUse& use) {
  return findGarbage({lease}, use).size();
}

TEST(Garbage, IncludesAllLeasesOfMissingDomain) {
  EXPECT_EQ(garbageOf(lease("rail0", true), {}), 1U);
  EXPECT_EQ(garbageOf(lease("rail0", false), {}), 1U);
}

TEST(Garbage, ExcludesPersistentLeasesOfMappedMissingDomain) {
  DomainUse use;
  use.mapped = true;
  EXPECT_EQ(garbageOf(lease("rail0", true), use), 0U);
  EXPECT_EQ(garbageOf(lease("rail0", false), use), 1U)
      << "it was never in the persistent configuration";
}

TEST(Garbage, ExcludesLeasesInPersistentXml) {
  EXPECT_EQ(garbageOf(lease("rail0", true), {true, false, false, {"rail0"}, {}}), 0U);
  EXPECT_EQ(garbageOf(lease("rail0", true), {true, false, true, {"rail0"}, {}}), 0U);
  EXPECT_EQ(garbageOf(lease("rail0", true), {true, false, false, {"rail1"}, {}}), 1U);
}

TEST(Garbage, ExcludesPluggedDevicesOfRunningGuest) {
  EXPECT_EQ(garbageOf(lease("rail0", false), {true, false, true, {}, {"rail0"}}), 0U);
  EXPECT_EQ(garbageOf(lease("rail0", true), {true, false, true, {}, {"rail0"}}), 0U);
  EXPECT_EQ(garbageOf(lease("rail0", false), {true, false, true, {}, {}}), 1U)
      << "it was unplugged";
}

TEST(Garbage, IncludesLiveLeaseAfterGuestStopped) {
  EXPECT_EQ(garbageOf(lease("rail0", false), {true, false, false, {"rail0"}, {"rail0"}}), 1U);
}

TEST(Garbage, UnreadableXmlCountsAsUsingEveryLease) {
  DomainUse use{true, false, true, {}, {}};
  use.configuredUnknown = true;
  EXPECT_EQ(garbageOf(lease("rail0", true), use), 0U);
  EXPECT_EQ(garbageOf(lease("rail0", false), use), 1U) << "the live XML is known";
  use.configuredUnknown = false;
  use.pluggedUnknown = true;
  EXPECT_EQ(garbageOf(lease("rail0", true), use), 0U);
  EXPECT_EQ(garbageOf(lease("rail0", false), use), 0U);
}

}  // namespace
}  // namespace vfpass::plan
