#include "vfpass/domain/read_domain_facts.hpp"

#include <gtest/gtest.h>

#include "vfpass/error.hpp"

namespace vfpass::domain {
namespace {

std::string domainWithMemory(const std::string& head, const std::string& devices = "") {
  return "<domain type='kvm'><name>train0</name>" + head + "<devices>" + devices +
         "</devices></domain>";
}

TEST(GuestMemory, ReadsSizeLimitAndDevices) {
  const std::string hostdev =
      "<hostdev mode='subsystem' type='pci'><source><address domain='0x0000' bus='0x3b' "
      "slot='0x00' "
      "function='0x1'/></source></hostdev>";
  const GuestMemory memory = guestMemory(domainWithMemory(
      "<memory unit='KiB'>4194304</memory><memtune><hard_limit unit='GiB'>6</hard_limit>"
      "</memtune>",
      hostdev + hostdev + "<iommu model='intel'/>"));
  EXPECT_EQ(memory.domain, "train0");
  EXPECT_EQ(memory.bytes, 4ULL << 30U);
  EXPECT_EQ(memory.hardLimit, 6ULL << 30U);
  EXPECT_TRUE(memory.viommu);
  EXPECT_EQ(memory.devices, 2U);
}

TEST(GuestMemory, HasNoLimitWithoutMemtune) {
  const GuestMemory memory = guestMemory(domainWithMemory("<memory>1024</memory>"));
  EXPECT_EQ(memory.bytes, 1ULL << 20U);
  EXPECT_EQ(memory.hardLimit, std::nullopt);
  EXPECT_FALSE(memory.viommu);
}

TEST(GuestMemory, IgnoresInvalidAmountsAndRejectsInvalidXml) {
  EXPECT_EQ(guestMemory(domainWithMemory("<memory unit='GiB'>18446744073709551615</memory>")).bytes,
            0U);
  EXPECT_EQ(guestMemory(domainWithMemory("<memory unit='bananas'>7</memory>")).bytes, 0U);
  EXPECT_EQ(guestMemory(domainWithMemory("<memory>-1</memory>")).bytes, 0U);
  EXPECT_THROW(guestMemory("<domain"), Error);
}

}  // namespace
}  // namespace vfpass::domain
