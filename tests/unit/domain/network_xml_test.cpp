#include "vfpass/domain/domain_xml.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "vfpass/error.hpp"

namespace vfpass::domain {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(NetworkXml, ListsVfsOfActivePool) {
  // As libvirt 9.0 prints an active network that was defined with <pf dev='eth0'/> alone.
  const auto pool = readNetworkPool(R"(<network connections='1'>
  <name>pool</name>
  <forward mode='hostdev' managed='yes'>
    <pf dev='eth0'/>
    <address type='pci' domain='0x0000' bus='0x01' slot='0x00' function='0x1'/>
    <address type='pci' domain='0x0000' bus='0x01' slot='0x00' function='0x2'/>
  </forward>
</network>)");
  EXPECT_EQ(pool.network, "pool");
  EXPECT_THAT(pool.devices,
              ElementsAre(*parsePciAddress("0000:01:00.1"), *parsePciAddress("0000:01:00.2")));
  EXPECT_THAT(pool.pfNetdevs, ElementsAre("eth0"));
}

TEST(NetworkXml, NamesPfOfInactivePool) {
  const auto pool = readNetworkPool(
      "<network><name>pool</name><forward mode='hostdev'><pf dev='eth0'/></forward></network>");
  EXPECT_THAT(pool.devices, IsEmpty());
  EXPECT_THAT(pool.pfNetdevs, ElementsAre("eth0"));
}

TEST(NetworkXml, IsEmptyForOtherNetworks) {
  EXPECT_THAT(readNetworkPool("<network><forward mode='nat'/></network>").devices, IsEmpty());
  EXPECT_EQ(readNetworkPool("<network><name>isolated</name></network>"),
            (NetworkPool{"isolated", {}, {}}));
}

TEST(NetworkXml, RejectsOtherXml) {
  EXPECT_THROW(readNetworkPool("<domain/>"), Error);
  EXPECT_THROW(readNetworkPool("<network>"), Error);
}

}  // namespace
}  // namespace vfpass::domain
