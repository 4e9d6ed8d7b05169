#include "vf_port.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "vfpass/error.hpp"

namespace vfpass::host {
namespace {

// The loopback interface is there on every Linux, has no VFs, and answers without any privilege.
constexpr int loopback = 1;
constexpr std::chrono::milliseconds deadline{5000};

TEST(NetlinkPort, ReadsAnInterfaceWithoutVfs) {
  EXPECT_TRUE(NetlinkPort(loopback, false, "lo", deadline).read().empty());
}

TEST(NetlinkPort, HandsOnTheKernelsRefusal) {
  VfSettings settings;
  settings.trust = true;
  NetlinkPort port(loopback, false, "lo", deadline);
  EXPECT_NE(port.set({{0, settings}}).error, 0);  // EPERM, or EOPNOTSUPP for root
  EXPECT_EQ(port.set({}).error, 0);
}

TEST(NetlinkPort, AnInterfaceThatIsNotThereIsAnError) {
  try {
    NetlinkPort(0x7ffffff0, false, "ens9", deadline).read();
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), testing::AllOf(testing::HasSubstr("ens9: reading VF attributes"),
                                             testing::HasSubstr("ENODEV")));
  }
}

}  // namespace
}  // namespace vfpass::host
