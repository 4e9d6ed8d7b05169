#include "vfpass/domain/read_domain_facts.hpp"

#include <gtest/gtest.h>

#include "vfpass/error.hpp"

namespace vfpass::domain {
namespace {

std::string hostdev(const std::string& driver) {
  return "<hostdev mode='subsystem' type='pci'>" + driver +
         "<source><address domain='0x0000' bus='0x3b' slot='0x00' function='0x1'/></source>"
         "</hostdev>";
}

VfioBackend backendOf(const std::string& devices, const std::string& head = "") {
  return configuredBackend("<domain type='kvm'><name>train0</name>" + head + "<devices>" + devices +
                           "</devices></domain>");
}

TEST(ConfiguredBackend, IsContainerByDefault) {
  EXPECT_EQ(backendOf(hostdev("")), VfioBackend::container);
  EXPECT_EQ(backendOf(hostdev("<driver name='vfio'/>")), VfioBackend::container);
  EXPECT_EQ(backendOf("<disk><driver iommufd='yes'/></disk>"), VfioBackend::container);
}

TEST(ConfiguredBackend, IsIommufdIfOneDeviceUsesIt) {
  EXPECT_EQ(backendOf(hostdev("") + hostdev("<driver iommufd='yes'/>")), VfioBackend::iommufd);
}

TEST(ConfiguredBackend, FollowsTheDomainByDefault) {
  const std::string head = "<iommufd enabled='yes' fdgroup='iommu'/>";
  EXPECT_EQ(backendOf(hostdev(""), head), VfioBackend::iommufd);
  EXPECT_EQ(backendOf(hostdev("<driver iommufd='no'/>"), head), VfioBackend::container);
  EXPECT_EQ(backendOf("", head), VfioBackend::container) << "no host device";
}

TEST(ConfiguredBackend, IsIommufdIfAnArgumentOfQemuUsesIt) {
  const auto withArgument = [](const std::string& device) {
    return "<qemu:commandline><qemu:arg value='-object'/><qemu:arg value='iommufd,id=iommufd0'/>"
           "<qemu:arg value='-device'/><qemu:arg value='" +
           device + "'/></qemu:commandline>";
  };
  EXPECT_EQ(backendOf(hostdev(""), withArgument("vfio-pci,host=0000:41:00.0,iommufd=iommufd0")),
            VfioBackend::iommufd);
  EXPECT_EQ(backendOf(hostdev(""), withArgument("vfio-pci,host=0000:41:00.0")),
            VfioBackend::container)
      << "the object alone changes nothing";
}

TEST(ConfiguredBackend, IsTheAdministratorsInDomainFacts) {
  const auto factsOf = [](const std::string& head, const std::string& devices) {
    return readDomainFacts("<domain type='kvm'><name>train0</name>" + head + "<devices>" + devices +
                           "</devices></domain>");
  };
  EXPECT_EQ(factsOf("", hostdev("")).iommufd, std::nullopt);
  EXPECT_EQ(factsOf("<iommufd enabled='no'/>", "").iommufd, false);
  EXPECT_EQ(factsOf("<iommufd enabled='yes' fdgroup='iommu'/>", "").iommufd, true);
}

TEST(ConfiguredBackend, NamesTheDevicesThatUseIommufdThemselves) {
  const auto devicesOf = [](const std::string& devices, const std::string& tail = "") {
    return readDomainFacts(
               "<domain type='kvm'><name>train0</name><iommufd enabled='yes'/><devices>" + devices +
               "</devices>" + tail + "</domain>")
        .iommufdDevices;
  };
  using Names = std::vector<std::string>;
  EXPECT_EQ(devicesOf(hostdev("") + hostdev("<driver iommufd='no'/>")), Names());
  EXPECT_EQ(devicesOf(hostdev("<driver iommufd='yes'/>")), Names{"<hostdev> 0000:3b:00.1"});
  EXPECT_EQ(devicesOf("<hostdev type='pci'><driver iommufd='yes'/></hostdev>"), Names{"<hostdev>"});
  EXPECT_EQ(devicesOf("",
                      "<qemu:commandline><qemu:arg value='-device'/><qemu:arg "
                      "value='vfio-pci,host=0000:41:00.0,iommufd=fd0'/></qemu:commandline>"),
            Names{"vfio-pci 0000:41:00.0"});
}

TEST(ConfiguredBackend, RejectsOtherXml) {
  EXPECT_THROW(static_cast<void>(configuredBackend("<network/>")), Error);
}

}  // namespace
}  // namespace vfpass::domain
