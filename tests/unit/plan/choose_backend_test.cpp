#include "vfpass/plan/choose_backend.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "attach_decisions.hpp"

namespace vfpass::plan {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

// A GPU and a NIC on Debian testing, whose iommufd maps BARs.
BackendTerms newHost(std::optional<IommuBackend> requested = {}) {
  BackendTerms terms;
  terms.requested = requested;
  terms.peers = true;
  terms.versions = {Version{12, 8}, Version{11, 1}};
  terms.kernel = Version{7, 2};
  return terms;
}

// The same on Debian 13.
BackendTerms oldHost(std::optional<IommuBackend> requested = {}) {
  BackendTerms terms = newHost(requested);
  terms.versions = {Version{11, 3}, Version{10, 0}};
  terms.kernel = Version{6, 12};
  return terms;
}

Objection onlyObjection(const BackendTerms& terms) {
  const BackendChoice choice = chooseBackend(terms);
  EXPECT_EQ(choice.objections.size(), 1U);
  EXPECT_FALSE(choice.setting.has_value());
  return choice.objections.empty() ? Objection{} : choice.objections[0];
}

TEST(ChooseBackend, AutoKeepsContainersAndWritesNothing) {
  for (const BackendTerms& terms :
       {newHost(), oldHost(), newHost(IommuBackend::automatic), oldHost(IommuBackend::automatic)}) {
    const BackendChoice choice = chooseBackend(terms);
    EXPECT_EQ(choice.backend, VfioBackend::container);
    EXPECT_FALSE(choice.setting.has_value());
    EXPECT_THAT(choice.objections, IsEmpty());
    EXPECT_THAT(choice.note, HasSubstr("iommu-backend: auto: containers (libvirt's default); "
                                       "VFIO containers (type 1) map each device's BARs"));
  }
}

TEST(ChooseBackend, SaysNothingOfDefaultWithoutPeers) {
  BackendTerms terms = oldHost();
  terms.peers = false;
  EXPECT_EQ(chooseBackend(terms).note, "");
  terms.requested = IommuBackend::automatic;
  EXPECT_NE(chooseBackend(terms).note, "") << "the mapping asks for the reason";
}

TEST(ChooseBackend, IommufdIsWrittenForLibvirtThatKnowsTheElement) {
  const BackendChoice choice = chooseBackend(newHost(IommuBackend::iommufd));
  EXPECT_EQ(choice.backend, VfioBackend::iommufd);
  EXPECT_THAT(choice.objections, IsEmpty());
  ASSERT_TRUE(choice.setting && choice.setting->edit);
  EXPECT_EQ(choice.setting->edit->place, EditPlace::domain);
  EXPECT_EQ(choice.setting->edit->elements, std::vector<std::string>{"<iommufd enabled='yes'/>"});
  EXPECT_THAT(choice.note, HasSubstr("iommufd (the mapping requests it); iommufd maps each"));
  EXPECT_THAT(choice.note, Not(HasSubstr("GPUDirect RDMA fails")));
}

TEST(ChooseBackend, IommufdIsRefusedWithoutTheElement) {
  for (const auto& libvirt :
       {std::optional(Version{12, 1}), std::optional(Version{9, 0}), std::optional<Version>()}) {
    BackendTerms terms = newHost(IommuBackend::iommufd);
    terms.versions.libvirt = libvirt;
    const Objection objection = onlyObjection(terms);
    EXPECT_THAT(objection.message, HasSubstr("this host has libvirt " + versionText(libvirt)));
    EXPECT_THAT(objection.message, HasSubstr("libvirt 12.2 or newer"));
    EXPECT_EQ(objection.code, ExitCode::refused);
  }
}

TEST(ChooseBackend, WarnsWherePeerToPeerIsLost) {
  for (const auto& [kernel, qemu] :
       {std::pair(Version{6, 18}, Version{11, 1}), std::pair(Version{6, 19}, Version{10, 2})}) {
    BackendTerms terms = newHost(IommuBackend::iommufd);
    terms.kernel = kernel;
    terms.versions.qemu = qemu;
    const BackendChoice choice = chooseBackend(terms);
    EXPECT_THAT(choice.objections, IsEmpty()) << "the guest may do without";
    EXPECT_TRUE(choice.setting.has_value());
    EXPECT_THAT(choice.note, HasSubstr("GPUDirect RDMA fails"));
    EXPECT_THAT(choice.note, HasSubstr("Linux " + versionText(kernel)));
  }
  BackendTerms unknown = newHost(IommuBackend::iommufd);
  unknown.versions.qemu = std::nullopt;
  EXPECT_THAT(chooseBackend(unknown).note, HasSubstr("is unknown"));
}

TEST(ChooseBackend, AutoFollowsTheDomain) {
  BackendTerms terms = oldHost();
  terms.domains = true;
  const BackendChoice choice = chooseBackend(terms);
  EXPECT_EQ(choice.backend, VfioBackend::iommufd);
  EXPECT_FALSE(choice.setting.has_value());
  EXPECT_THAT(choice.objections, IsEmpty());
  EXPECT_THAT(choice.note, HasSubstr("the domain's <iommufd> says so"));
  EXPECT_THAT(choice.note, HasSubstr("GPUDirect RDMA fails"));
  terms.domains = false;
  EXPECT_EQ(chooseBackend(terms).backend, VfioBackend::container);
}

TEST(ChooseBackend, OneDeviceWithIommufdLosesPeers) {
  BackendTerms terms = oldHost();
  terms.domainsDevices = {"<hostdev> 0000:3b:00.1"};
  const BackendChoice choice = chooseBackend(terms);
  EXPECT_EQ(choice.backend, VfioBackend::container);
  EXPECT_THAT(choice.note, HasSubstr("a device of the domain uses iommufd"));
  EXPECT_THAT(choice.note, HasSubstr("GPUDirect RDMA fails"));
}

TEST(ChooseBackend, RefusesRequestAgainstTheDomain) {
  BackendTerms terms = newHost(IommuBackend::container);
  terms.domains = true;
  EXPECT_THAT(onlyObjection(terms).message,
              HasSubstr("iommu-backend: container, but the domain has <iommufd enabled='yes'/>"));
  EXPECT_EQ(onlyObjection(terms).code, ExitCode::badInput);
  terms = newHost(IommuBackend::iommufd);
  terms.domains = false;
  EXPECT_THAT(onlyObjection(terms).message, HasSubstr("<iommufd enabled='no'/>"));
  terms.domains = true;
  const BackendChoice same = chooseBackend(terms);
  EXPECT_THAT(same.objections, IsEmpty());
  EXPECT_FALSE(same.setting.has_value()) << "the element is there";
}

TEST(ChooseBackend, KernelWithoutContainersTakesIommufd) {
  BackendTerms terms = newHost();
  terms.containers = false;
  EXPECT_TRUE(chooseBackend(terms).setting.has_value());
  EXPECT_THAT(chooseBackend(terms).note, HasSubstr("the kernel has no VFIO containers"));
  terms.requested = IommuBackend::container;
  EXPECT_THAT(onlyObjection(terms).message, HasSubstr("the kernel has no VFIO containers"));
  terms = oldHost();
  terms.containers = false;
  EXPECT_THAT(onlyObjection(terms).message, HasSubstr("this host has libvirt 11.3"));
  EXPECT_THAT(onlyObjection(terms).remedy, Not(HasSubstr("auto")));
}

// Grace: QEMU refuses a container behind such an SMMU.
TEST(ChooseBackend, AcceleratedSmmuTakesIommufd) {
  BackendTerms terms = newHost();
  terms.fastSmmus = true;
  EXPECT_TRUE(chooseBackend(terms).setting.has_value());
  EXPECT_THAT(chooseBackend(terms).note,
              HasSubstr("auto: iommufd (the domain has an <iommu> with accel='on')"));
  terms.domains = false;
  EXPECT_EQ(chooseBackend(terms).backend, VfioBackend::container) << "the domain says so";
  terms.domains = std::nullopt;
  terms.versions.libvirt = Version{12, 1};
  EXPECT_THAT(onlyObjection(terms).message,
              HasSubstr("auto: the domain has an <iommu> with accel='on', and iommufd needs"));
  EXPECT_THAT(onlyObjection(terms).remedy, Not(HasSubstr("auto")));
  terms = newHost();
  terms.fastSmmus = true;
  terms.iommufd = false;
  EXPECT_EQ(onlyObjection(terms).remedy,
            "remove accel='on' from the <driver> of each <iommu>, or boot a kernel that has "
            "iommufd");
}

// libvirt would write the configuration, and the start would fail without a device to open.
TEST(ChooseBackend, KernelWithoutIommufdKeepsContainers) {
  BackendTerms terms = newHost();
  terms.iommufd = false;
  EXPECT_EQ(chooseBackend(terms).backend, VfioBackend::container);
  EXPECT_THAT(chooseBackend(terms).objections, IsEmpty());
  terms.requested = IommuBackend::iommufd;
  EXPECT_THAT(onlyObjection(terms).message,
              HasSubstr("iommu-backend: iommufd: the kernel has no iommufd for VFIO devices"));
  EXPECT_EQ(onlyObjection(terms).remedy,
            "set `iommu-backend: auto` in the mapping and attach it, or boot a kernel that has "
            "iommufd");
  terms = newHost();
  terms.iommufd = false;
  terms.domains = true;
  EXPECT_THAT(onlyObjection(terms).message, HasSubstr("the domain has <iommufd enabled='yes'/>"));
  EXPECT_EQ(onlyObjection(terms).remedy,
            "remove that element from it, or boot a kernel that has iommufd");
  terms = newHost();
  terms.iommufd = terms.containers = false;
  EXPECT_THAT(onlyObjection(terms).message, HasSubstr("no VFIO containers and no iommufd"));
  EXPECT_THAT(onlyObjection(terms).remedy, Not(HasSubstr("auto")));
}

// libvirt 12.2 and newer accept a QEMU from 7.2 on.
TEST(ChooseBackend, QemuWithoutIommufdIsRefused) {
  BackendTerms terms = newHost(IommuBackend::iommufd);
  terms.versions.qemu = Version{8, 2};
  EXPECT_EQ(
      onlyObjection(terms).message,
      "iommu-backend: iommufd: iommufd needs QEMU 9.0 or newer, which has the object iommufd; "
      "this host has QEMU 8.2");
  EXPECT_EQ(onlyObjection(terms).remedy,
            "set `iommu-backend: auto` in the mapping and attach it, or install QEMU 9.0 or newer");
  EXPECT_EQ(onlyObjection(terms).code, ExitCode::refused);
  terms.requested = std::nullopt;
  EXPECT_THAT(chooseBackend(terms).objections, IsEmpty()) << "containers";
  terms.containers = false;
  EXPECT_EQ(onlyObjection(terms).remedy, "install QEMU 9.0 or newer");
}

TEST(ChooseBackend, QemuWithoutIommufdRefusesDomainsOwnUse) {
  BackendTerms terms = newHost();
  terms.versions.qemu = Version{8, 2};
  terms.domainsDevices = {"<hostdev> 0000:3b:00.1"};
  EXPECT_THAT(onlyObjection(terms).message,
              HasSubstr("requests iommufd for <hostdev> 0000:3b:00.1"));
  terms.domainsDevices.clear();
  terms.domains = true;
  EXPECT_THAT(onlyObjection(terms).message, HasSubstr("the domain has <iommufd enabled='yes'/>"));
  for (const auto& qemu : {std::optional(Version{9, 0}), std::optional<Version>()}) {
    terms.versions.qemu = qemu;
    EXPECT_THAT(chooseBackend(terms).objections, IsEmpty());
  }
}

// `iommu-backend: auto` takes containers for the mapping's devices; that one fails the start.
TEST(ChooseBackend, KernelWithoutIommufdRefusesDomainsOwnDevice) {
  BackendTerms terms = newHost();
  terms.domainsDevices = {"<hostdev> 0000:3b:00.1"};
  EXPECT_THAT(chooseBackend(terms).objections, IsEmpty());
  terms.iommufd = false;
  EXPECT_THAT(onlyObjection(terms).message,
              HasSubstr("the domain requests iommufd for <hostdev> 0000:3b:00.1: the kernel has no "
                        "iommufd for VFIO devices"));
  EXPECT_THAT(onlyObjection(terms).remedy, HasSubstr("remove iommufd='yes' from the <driver>"));
}

// After one of them is removed the other still asks for it.
TEST(ChooseBackend, KernelWithoutIommufdNamesEveryUse) {
  BackendTerms terms = newHost(IommuBackend::iommufd);
  terms.domains = true;
  terms.domainsDevices = {"<hostdev> 0000:3b:00.1"};
  const auto uses = iommufdUses(terms);
  ASSERT_EQ(uses.size(), 3U);
  EXPECT_EQ(uses[0].what, "the domain has <iommufd enabled='yes'/>");
  EXPECT_EQ(uses[1].what, "iommu-backend: iommufd");
  EXPECT_EQ(uses[2].what, "the domain requests iommufd for <hostdev> 0000:3b:00.1");
  terms.iommufd = false;
  EXPECT_EQ(chooseBackend(terms).objections.size(), 3U);
}

TEST(ChooseBackend, ElementOfEarlierMappingIsUsedUntilAttach) {
  BackendTerms terms = newHost();
  EXPECT_THAT(iommufdUses(terms), IsEmpty());
  terms.configured = VfioBackend::iommufd;
  ASSERT_EQ(iommufdUses(terms).size(), 1U);
  EXPECT_EQ(iommufdUses(terms)[0].what,
            "attach has written <iommufd enabled='yes'/> for an earlier mapping");
  EXPECT_EQ(iommufdUses(terms)[0].remedy,
            "attach the present mapping, which removes it, or boot a kernel that has iommufd");
  terms.requested = IommuBackend::iommufd;
  ASSERT_EQ(iommufdUses(terms).size(), 1U);
  EXPECT_EQ(iommufdUses(terms)[0].what, "iommu-backend: iommufd");
}

// Whoever has no containers cannot be told to use them.
TEST(ChooseBackend, PeersLostWithoutContainersNeedNewerVersions) {
  BackendTerms terms = oldHost();
  terms.domains = true;
  EXPECT_EQ(chooseBackend(terms).peers.possible, false);
  EXPECT_THAT(chooseBackend(terms).peers.remedy, HasSubstr("containers map BARs"));
  terms.containers = false;
  EXPECT_THAT(chooseBackend(terms).peers.remedy, HasSubstr("install Linux 6.19 and QEMU 11.0"));
  EXPECT_THAT(chooseBackend(terms).note, Not(HasSubstr("containers map BARs")));
  EXPECT_EQ(chooseBackend(newHost(IommuBackend::iommufd)).peers.possible, true);
}

Topology gpuAndNic() {
  Topology host;
  Device gpu;
  gpu.role = FunctionRole::gpu;
  gpu.address = *parsePciAddress("0000:10:00.0");
  Device nic = gpu;
  nic.role = FunctionRole::nic;
  nic.address = *parsePciAddress("0000:11:00.0");
  host.functions = {gpu, nic};
  return host;
}

TEST(ChooseBackend, PeersAreGpuAndAnotherDevice) {
  const Topology host = gpuAndNic();
  const PciAddress nic = host.functions[1].address;
  Mapping mapping;
  mapping.functions.resize(1);
  mapping.functions[0].pci = host.functions[0].address;
  EXPECT_FALSE(hasPeers(mapping, {}, host)) << "alone";
  mapping.vfs.resize(1);
  EXPECT_TRUE(hasPeers(mapping, {}, host));
  mapping.functions[0].pci = nic;
  EXPECT_FALSE(hasPeers(mapping, {}, host)) << "no GPU";
  mapping.functions[0].pci = *parsePciAddress("0000:99:00.0");
  EXPECT_FALSE(hasPeers(mapping, {}, host)) << "missing";
}

// <iommufd enabled='yes'/>, which attach writes for the mapping's VF, covers the domain's own GPU.
TEST(ChooseBackend, PeersAreAlsoTheDomainsOwnDevices) {
  const Topology host = gpuAndNic();
  const PciAddress gpu = host.functions[0].address;
  Mapping mapping;
  mapping.vfs.resize(1);
  EXPECT_TRUE(hasPeers(mapping, {gpu}, host));
  EXPECT_FALSE(hasPeers(mapping, {host.functions[1].address}, host)) << "no GPU";
  mapping.vfs.clear();
  EXPECT_FALSE(hasPeers(mapping, {gpu}, host)) << "alone";
  mapping.functions.resize(1);
  mapping.functions[0].pci = gpu;
  EXPECT_FALSE(hasPeers(mapping, {gpu}, host)) << "adopted";
  BackendTerms terms = oldHost(IommuBackend::iommufd);
  terms.versions.libvirt = Version{12, 8};
  EXPECT_THAT(chooseBackend(terms).note, HasSubstr("GPUDirect RDMA fails; remove"));
}

// judgeMappings() advises iommufd to it, and no backend would bring GPUDirect RDMA.
TEST(ChooseBackend, ConfidentialGuestLosesNothingByIommufd) {
  BackendTerms terms = oldHost(IommuBackend::iommufd);
  terms.versions.libvirt = Version{12, 8};
  terms.confidential = true;
  const BackendChoice choice = chooseBackend(terms);
  ASSERT_TRUE(choice.setting.has_value());
  for (const std::string& text : {choice.note, choice.setting->reason}) {
    EXPECT_THAT(text, HasSubstr("confidential-guest"));
    EXPECT_THAT(text, Not(HasSubstr("GPUDirect RDMA fails")));
    EXPECT_THAT(text, Not(HasSubstr("containers")));
  }
  EXPECT_EQ(choice.peers.remedy, "");
  terms.requested = std::nullopt;
  EXPECT_EQ(chooseBackend(terms).note, "");
}

TEST(ChooseBackend, SettingIsAppliedAlsoIfOthersAreOnlyShown) {
  const BackendChoice choice = chooseBackend(newHost(IommuBackend::iommufd));
  ASSERT_TRUE(choice.setting.has_value());
  EXPECT_TRUE(isApplied(Mapping(), *choice.setting));
}

}  // namespace
}  // namespace vfpass::plan
