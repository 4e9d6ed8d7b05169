#include "guest_devices.hpp"

#include <gmock/gmock.h>

#include <sstream>

#include "hosts/sysfs_tree.hpp"
#include "vfpass/domain/read_domain_facts.hpp"
#include "vfpass/error.hpp"

namespace vfpass::commands {
namespace {

std::string remedyFor(const std::string& vm, const report::TopologyReport& host) {
  try {
    static_cast<void>(guestDevicesOf(vm, host));
  } catch (const Error& error) {
    return error.remedy();
  }
  return "nothing was thrown";
}

TEST(GuestDevices, VmWithoutLeaseHasCommandAndSuggestion) {
  report::TopologyReport host;
  host.leases.resize(1);
  host.leases[0].domainName = "train0";
  EXPECT_EQ(remedyFor("trian0", host), "run `vfpass attach trian0` first, or did you mean train0?");
  EXPECT_EQ(remedyFor("my vm", host), "run `vfpass attach 'my vm'` first");
}

/// A captured host with Linux 6.12, a GPU, and a mapping of one VF with iommufd.
class NextBackendTest : public testing::Test {
 protected:
  NextBackendTest() {
    tree_.file("proc/sys/kernel/osrelease", "6.12.0\n");
    Device gpu;
    gpu.role = FunctionRole::gpu;
    gpu.address = *parsePciAddress("0000:10:00.0");
    host_.functions = {gpu};
    mapping_.vm = "train0";
    mapping_.vfs.resize(1);
    mapping_.iommuBackend = IommuBackend::iommufd;
    options_.sysroot = tree_.path();
  }

  std::optional<PeerMapping> lost(const std::string& xml) {
    Session session(options_, out_, out_);
    return peersLostBy(session, mapping_, host_, xml);
  }

  static std::string domain(const std::string& devices, const std::string& rest = "") {
    return "<domain type='kvm'><name>train0</name><devices>" + devices + "</devices>" + rest +
           "</domain>";
  }

  const std::string gpu_ =
      "<hostdev mode='subsystem' type='pci'><source><address domain='0' bus='0x10' slot='0' "
      "function='0'/></source></hostdev>";
  hosts::SysfsTree tree_;
  Topology host_;
  Mapping mapping_;
  GlobalOptions options_;
  std::ostringstream out_;
};

TEST_F(NextBackendTest, LosesPeersOfTheDomainsOwnGpu) {
  EXPECT_EQ(lost(domain("")), std::nullopt) << "one VF alone";
  const auto peers = lost(domain(gpu_));
  ASSERT_TRUE(peers);
  EXPECT_EQ(peers->possible, false);
  EXPECT_TRUE(peers->nextStart);
  EXPECT_NE(peers->remedy, "");
  EXPECT_TRUE(lost(domain("",
                          "<qemu:commandline><qemu:arg value='-device'/><qemu:arg "
                          "value='vfio-pci,host=10:00.0'/></qemu:commandline>")));
}

TEST_F(NextBackendTest, ConfidentialGuestHasNoPeersToLose) {
  const std::string xml = domain(gpu_ + gpu_, "<launchSecurity type='tdx'/>");
  EXPECT_EQ(lost(xml), std::nullopt);
  Session session(options_, out_, out_);
  EXPECT_EQ(nextBackendOf(session, mapping_, host_, xml), VfioBackend::iommufd)
      << "the mapping's, also before attach";
  DomainDescription description;
  description.persistentXml = xml;
  EXPECT_EQ(peerMappingOf(session, description, {}), std::nullopt);
}

// As in a kernel with CONFIG_IOMMUFD_VFIO_CONTAINER.
TEST_F(NextBackendTest, TakesIommufdWithoutType1) {
  mapping_.iommuBackend = std::nullopt;
  const auto backend = [&] {
    return plan::chooseBackend(backendTerms(host::Root(tree_.path()), mapping_, host_, {})).backend;
  };
  tree_.file("sys/module/vfio/refcnt", "0\n");
  tree_.file("sys/class/misc/vfio/dev", "10:196\n");
  tree_.file("sys/class/misc/iommu/dev", "10:124\n");
  tree_.file("lib/modules/6.12.0/modules.dep", "kernel/drivers/vfio/vfio_iommu_type1.ko:\n");
  EXPECT_EQ(backend(), VfioBackend::container);
  tree_.file("lib/modules/6.12.0/modules.dep", "kernel/drivers/vfio/vfio.ko:\n");
  EXPECT_EQ(backend(), VfioBackend::iommufd);
}

TEST_F(NextBackendTest, ContainersOfIommufdDoNotMapBars) {
  tree_.file("lib/modules/6.12.0/modules.dep", "kernel/drivers/vfio/vfio.ko:\n");
  Session session(options_, out_, out_);
  DomainDescription description;
  description.persistentXml = domain(gpu_ + gpu_);
  const auto peers = peerMappingOf(session, description, {});
  ASSERT_TRUE(peers);
  EXPECT_EQ(peers->backend, VfioBackend::container);
  EXPECT_EQ(peers->possible, false);
}

}  // namespace
}  // namespace vfpass::commands
