#include "vfpass/domain/network_xml.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "vfpass/error.hpp"

namespace vfpass::domain {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(NetworkXml, ListsTheVfsOfAHostdevPool) {
  // As libvirt 9.0 prints an active network that was defined with <pf dev='eth0'/> alone.
  EXPECT_THAT(poolDevices(R"(<network connections='1'>
  <name>pool</name>
  <forward mode='hostdev' managed='yes'>
    <pf dev='eth0'/>
    <address type='pci' domain='0x0000' bus='0x01' slot='0x00' function='0x1'/>
    <address type='pci' domain='0x0000' bus='0x01' slot='0x00' function='0x2'/>
  </forward>
</network>)"),
              ElementsAre(*parsePciAddress("0000:01:00.1"), *parsePciAddress("0000:01:00.2")));
}

TEST(NetworkXml, OtherNetworksHandOutNoDevices) {
  EXPECT_THAT(poolDevices("<network><forward mode='nat'/></network>"), IsEmpty());
  EXPECT_THAT(poolDevices("<network><name>isolated</name></network>"), IsEmpty());
}

TEST(NetworkXml, RejectsWhatIsNoNetwork) {
  EXPECT_THROW(poolDevices("<domain/>"), Error);
  EXPECT_THROW(poolDevices("<network>"), Error);
}

}  // namespace
}  // namespace vfpass::domain
