#include "sriov/vf_port.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "vfpass/error.hpp"

namespace vfpass::host {
namespace {

// The loopback interface exists on every Linux system, has no VFs, and can be read without
// privileges.
constexpr int loopback = 1;
constexpr std::chrono::milliseconds portDeadline{5000};

TEST(NetlinkPort, ReadsInterfaceWithoutVfs) {
  EXPECT_TRUE(NetlinkPort(loopback, false, "lo", portDeadline).read().empty());
}

TEST(NetlinkPort, ReturnsKernelError) {
  VfSettings settings;
  settings.trust = true;
  NetlinkPort port(loopback, false, "lo", portDeadline);
  EXPECT_NE(port.set({{0, settings}}).error, 0);  // EPERM, or EOPNOTSUPP for root
  EXPECT_EQ(port.set({}).error, 0);
}

TEST(NetlinkPort, ThrowsForMissingInterface) {
  try {
    NetlinkPort(0x7ffffff0, false, "ens9", portDeadline).read();
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), testing::AllOf(testing::HasSubstr("ens9: reading VF attributes"),
                                             testing::HasSubstr("ENODEV")));
  }
}

TEST(ReadVfTables, AnswersForEachNetdev) {
  const auto tables =
      readVfTables({{loopback, false, "lo"}, {0x7ffffff0, false, "ens9"}}, portDeadline);
  ASSERT_EQ(tables.size(), 2U);
  ASSERT_TRUE(tables[0].table);
  EXPECT_TRUE(tables[0].table->empty());
  EXPECT_FALSE(tables[1].table) << "the netdev does not exist";
  EXPECT_TRUE(readVfTables({}, portDeadline).empty());
}

}  // namespace
}  // namespace vfpass::host
