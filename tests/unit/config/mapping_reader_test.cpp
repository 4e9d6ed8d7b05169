#include <gmock/gmock.h>

#include "support.hpp"

namespace vfpass::config {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

MappedVf soundVf(const std::string& rest, const std::string& top = "") {
  const ReadMapping read = readMappingText(withVf(rest, top));
  EXPECT_THAT(read.problems, IsEmpty());
  return read.mapping.vfs.empty() ? MappedVf{} : read.mapping.vfs[0];
}

std::vector<std::string> problems(const std::string& rest, const std::string& top = "") {
  return readMappingText(withVf(rest, top)).problems;
}

TEST(MappingReader, ReadsEveryKeyOfTheFormat) {
  const ReadMapping read = readMappingText(R"(version: 1
vm: train0
vfs:
  - name: rail0
    pf: {near: gpu0}
    index: 3
    mac: 52:54:00:ab:cd:ef
    vlan: {id: 100, qos: 5, protocol: 802.1ad}
    trust: true
    spoof-check: no
    link-state: enable
    rate: {min: 10, max: 1000}
    required: [mac, vlan]
    managed: yes
    interface: false
    teaming: {with: net0}
    guest: {address: 192.168.100.10/24, mtu: 9000}
gpus:
  - {name: gpu0, pci: "0000:3a:00.0", driver: nvgrace_gpu_vfio_pci}
topology: flat
nvlink: disabled
nccl: {gid-index: 3, traffic-class: 41, service-level: 0, qps: 16, timeout: 22}
allow: [shared-iommu-group, trust]
verify: {paths: [host, gpu], minimum-bandwidth: 90%, on-start: report}
)");
  EXPECT_THAT(read.problems, IsEmpty());
  const Mapping& mapping = read.mapping;
  EXPECT_EQ(mapping.file, "m.yaml");
  EXPECT_EQ(mapping.vm, "train0");
  EXPECT_EQ(toString(mapping.vmPlace), "m.yaml:2:5");
  EXPECT_EQ(mapping.topology, "flat");
  EXPECT_EQ(mapping.nccl, (NcclSettings{3, 41, 0, 16, 22}));
  EXPECT_THAT(mapping.allow, ElementsAre(Allowance::sharedIommuGroup, Allowance::trust));
  ASSERT_THAT(mapping.functions, SizeIs(1));
  EXPECT_EQ(mapping.functions[0].pci, parsePciAddress("0000:3a:00.0"));
  EXPECT_EQ(mapping.functions[0].driver, "nvgrace_gpu_vfio_pci");
  EXPECT_EQ(mapping.nvlink, NvlinkMode::disabled);
  ASSERT_THAT(mapping.vfs, SizeIs(1));
  const MappedVf& vf = mapping.vfs[0];
  EXPECT_EQ(vf.name, "rail0");
  EXPECT_EQ(toString(vf.place), "m.yaml:4:5");
  EXPECT_EQ(vf.pf.near, "gpu0");
  EXPECT_EQ(vf.index, 3U);
  EXPECT_FALSE(vf.macAutomatic);
  EXPECT_EQ(vf.settings.mac, parseMacAddress("52:54:00:ab:cd:ef"));
  EXPECT_EQ(vf.settings.vlan, (Vlan{100, 5, VlanProtocol::dot1ad}));
  EXPECT_EQ(vf.settings.trust, true);
  EXPECT_EQ(vf.settings.spoofCheck, false);
  EXPECT_EQ(vf.settings.linkState, LinkState::enable);
  EXPECT_EQ(vf.settings.rate, (Rate{10, 1000}));
  EXPECT_THAT(vf.required, ElementsAre(Attribute::mac, Attribute::vlan));
  EXPECT_TRUE(vf.managed);
  EXPECT_FALSE(vf.interfaceForm);
  EXPECT_EQ(vf.teamingWith, "net0");
  EXPECT_EQ(vf.guest.address, "192.168.100.10/24");
  EXPECT_EQ(vf.guest.mtu, 9000U);
}

TEST(MappingReader, UsesSafeDefaults) {
  const MappedVf vf = soundVf("");
  EXPECT_TRUE(vf.macAutomatic);
  EXPECT_EQ(vf.settings.mac, std::nullopt);
  EXPECT_EQ(vf.settings.trust, false);
  EXPECT_EQ(vf.settings.spoofCheck, true);
  EXPECT_EQ(vf.settings.linkState, LinkState::automatic);
  EXPECT_EQ(vf.settings.vlan, std::nullopt);
  EXPECT_EQ(vf.settings.rate, std::nullopt);
  EXPECT_FALSE(vf.managed);
  EXPECT_FALSE(vf.guidsAutomatic);
}

TEST(MappingReader, RequiresStatedAttributesButNotDefaults) {
  EXPECT_THAT(soundVf("").required, ElementsAre(Attribute::mac));
  EXPECT_THAT(soundVf("vlan: {id: 5}\ntrust: false\nlink-state: auto").required,
              ElementsAre(Attribute::mac, Attribute::vlan, Attribute::linkState, Attribute::trust));
  EXPECT_THAT(soundVf("infiniband: {}").required,
              ElementsAre(Attribute::nodeGuid, Attribute::portGuid));
  EXPECT_THAT(soundVf("vlan: {id: 5}\nrequired: []").required, IsEmpty());
  EXPECT_THAT(soundVf("required: [trust, spoof-check, link-state, mac]").required, SizeIs(4));
}

TEST(MappingReader, RefusesRequiredAttributesThatAreNotSet) {
  EXPECT_THAT(problems("required: [vlan]"),
              ElementsAre(HasSubstr("m.yaml:6:16: `vlan` is required")));
  EXPECT_THAT(problems("required: [node-guid]"), SizeIs(1));
  EXPECT_THAT(problems("infiniband: {}\nrequired: [mac]"), SizeIs(1));
  EXPECT_THAT(problems("infiniband: {}\nrequired: [trust]"), SizeIs(1));
}

TEST(MappingReader, ReadsInfinibandGuids) {
  const MappedVf automatic = soundVf("mac: auto\ninfiniband: {node-guid: auto}");
  EXPECT_TRUE(automatic.guidsAutomatic);
  EXPECT_TRUE(automatic.nodeGuidAutomatic);
  EXPECT_TRUE(automatic.portGuidAutomatic);
  EXPECT_EQ(automatic.settings.mac, std::nullopt);
  EXPECT_EQ(automatic.settings.spoofCheck, std::nullopt);
  EXPECT_EQ(automatic.settings.trust, std::nullopt);
  EXPECT_EQ(automatic.settings.linkState, LinkState::automatic);
  const MappedVf given =
      soundVf("infiniband: {node-guid: \"0x0200000000000001\", port-guid: 0200:0000:0000:000a}");
  EXPECT_FALSE(given.guidsAutomatic);
  EXPECT_EQ(given.settings.nodeGuid, Guid{0x0200000000000001});
  EXPECT_EQ(given.settings.portGuid, Guid{0x020000000000000a});
}

TEST(MappingReader, RefusesEthernetAttributesOnInfiniband) {
  EXPECT_THAT(problems("infiniband: {}\nmac: 52:54:00:ab:cd:ef"),
              ElementsAre(HasSubstr("has no MAC address")));
  for (const char* attribute :
       {"vlan: {id: 5}", "rate: {max: 5}", "spoof-check: true", "trust: false", "trust: true"}) {
    EXPECT_THAT(problems(std::string("infiniband: {}\n") + attribute),
                ElementsAre(HasSubstr("does not apply to an InfiniBand VF")))
        << attribute;
  }
  EXPECT_THAT(problems("infiniband: {}\ninterface: true"), SizeIs(1));
}

TEST(MappingReader, KeepsMacOnRequest) {
  const MappedVf vf = soundVf("mac: keep\nvlan: {id: 7}");
  EXPECT_TRUE(vf.macKept);
  EXPECT_FALSE(vf.macAutomatic);
  EXPECT_EQ(vf.settings.mac, std::nullopt);
  EXPECT_THAT(vf.required, ElementsAre(Attribute::vlan));
  EXPECT_THAT(soundVf("mac: keep").required, IsEmpty());
}

TEST(MappingReader, RefusesWhatNeedsTheMacThatVfKeeps) {
  EXPECT_THAT(problems("mac: keep\nrequired: [mac]"),
              ElementsAre(HasSubstr("`mac` is required, but this VF does not set it")));
  EXPECT_THAT(problems("mac: keep\ninterface: true"),
              ElementsAre(HasSubstr("an <interface> cannot keep the VF's MAC")));
  EXPECT_THAT(problems("mac: keep\nteaming: {with: net0}"),
              ElementsAre(HasSubstr("a teamed VF cannot keep its MAC")));
  EXPECT_THAT(problems("mac: keep\nguest: {name: rail0}"),
              ElementsAre(HasSubstr("a VF with `mac: keep` cannot be named")));
  EXPECT_THAT(problems("mac: keep\ninfiniband: {}"), ElementsAre(HasSubstr("has no MAC address")));
}

TEST(MappingReader, ReadsMigration) {
  EXPECT_TRUE(soundVf("migration: vfio").migrates);
  EXPECT_FALSE(soundVf("migration: none").migrates);
  EXPECT_FALSE(soundVf("").migrates);
  EXPECT_THAT(problems("migration: live"), SizeIs(1));
}

TEST(MappingReader, RefusesWhatCannotMigrateByVfio) {
  EXPECT_THAT(problems("migration: vfio\ninfiniband: {}"),
              ElementsAre(HasSubstr("an InfiniBand VF cannot migrate")));
  EXPECT_THAT(problems("migration: vfio\nteaming: {with: net0}"),
              ElementsAre(HasSubstr("a teamed VF does not migrate")));
  EXPECT_THAT(problems("migration: vfio\nmanaged: yes"),
              ElementsAre(HasSubstr("with `managed: yes` libvirt binds it")));
  EXPECT_THAT(problems("migration: vfio\nadopt: true\nindex: 1", "topology: flat\n"),
              ElementsAre(HasSubstr("`adopt: true` leaves the element as it is")));
  EXPECT_THAT(problems("migration: none\nmanaged: yes"), IsEmpty());
}

TEST(MappingReader, RefusesDevicesThatKeepTheVmFromMigrating) {
  EXPECT_THAT(problems("migration: vfio\n", "gpus: [{name: gpu0, pci: \"0000:41:00.0\"}]\n"),
              ElementsAre(HasSubstr("gpu0 keeps the VM from migrating")));
  const std::string other = "  - {name: rail1, pf: {rdma: mlx5_1}";
  const auto withOther = [&](const std::string& rest) {
    return readMappingText(
               "version: 1\nvm: train0\nvfs:\n  - {name: rail0, pf: {rdma: mlx5_0}, "
               "migration: vfio}\n" +
               other + rest + "}\n")
        .problems.size();
  };
  EXPECT_EQ(withOther(""), 1U);
  EXPECT_EQ(withOther(", migration: vfio"), 0U);
  EXPECT_EQ(withOther(", teaming: {with: net0}"), 0U);
}

TEST(MappingReader, RefusesZeroAndMulticastAddresses) {
  EXPECT_THAT(problems("mac: \"00:00:00:00:00:00\""), ElementsAre(HasSubstr("each boot")));
  EXPECT_THAT(problems("mac: \"01:00:5e:00:00:01\""), ElementsAre(HasSubstr("multicast")));
  EXPECT_THAT(problems("mac: ff:ff:ff:ff:ff:ff"), ElementsAre(HasSubstr("multicast")));
  EXPECT_THAT(problems("infiniband: {node-guid: \"0x0000000000000000\"}"), SizeIs(1));
  EXPECT_THAT(problems("infiniband: {port-guid: ff:ff:ff:ff:ff:ff:ff:ff}"), SizeIs(1));
  EXPECT_THAT(problems("mac: 52:54:00:12:34:56"), ElementsAre(HasSubstr("put it in quotes")));
}

TEST(MappingReader, TrustNeedsAllowEntry) {
  EXPECT_THAT(problems("trust: true"), ElementsAre(HasSubstr("add `trust` to `allow:`")));
  EXPECT_EQ(soundVf("trust: true", "allow: [trust]\n").settings.trust, true);
}

TEST(MappingReader, ChecksLowerAndUpperLimits) {
  for (const char* good : {"vlan: {id: 0}", "vlan: {id: 4094, qos: 7}", "index: 0", "index: 4095",
                           "index: auto", "rate: {min: 5, max: 5}", "rate: {min: 5}",
                           "rate: {max: 4294967295}", "guest: {mtu: 68}", "guest: {mtu: 65535}"}) {
    EXPECT_THAT(problems(good), IsEmpty()) << good;
  }
  for (const char* bad : {"vlan: {id: 4095}",
                          "vlan: {id: -1}",
                          "vlan: {id: 1, qos: 8}",
                          "vlan: {id: 1.5}",
                          "vlan: {id: 99999999999999999999}",
                          "vlan: {qos: 1}",
                          "vlan: 100",
                          "index: 4096",
                          "index: -1",
                          "index: first",
                          "rate: {min: 6, max: 5}",
                          "rate: {}",
                          "rate: {max: 4294967296}",
                          "guest: {mtu: 67}",
                          "guest: {mtu: 65536}",
                          "guest: {mtu: \"9000\"}",
                          "vlan: {id: 1, protocol: 802.1q}",
                          "link-state: up",
                          "managed: maybe",
                          "trust: 1",
                          "teaming: {}",
                          "teaming: {with: \"a b\"}",
                          "mac: 52:54",
                          "mac: 52:54:00-ab:cd:ef",
                          "guest: {address: 10.0.0.1}",
                          "required: [mac, mac]",
                          "required: mac"}) {
    EXPECT_THAT(problems(bad), SizeIs(1)) << bad;
  }
}

TEST(MappingReader, InterfaceSupportsOnlyTagWithoutPriority) {
  EXPECT_THAT(problems("interface: true\nvlan: {id: 5}"), IsEmpty());
  EXPECT_THAT(problems("interface: true\nvlan: {id: 5, qos: 1}"), SizeIs(1));
  EXPECT_THAT(problems("interface: true\nvlan: {id: 5, protocol: 802.1ad}"), SizeIs(1));
}

std::vector<std::string> pfProblems(const std::string& pf) {
  return readMappingText("version: 1\nvm: a\nvfs: [{name: r, pf: " + pf + "}]\n").problems;
}

TEST(MappingReader, PfNeedsExactlyOneKey) {
  for (const char* good : {"{netdev: ens1}", "{pci: \"0000:01:00.0\"}", "{pci: \"3b:00.1\"}",
                           "{rdma: mlx5_0}", "{pci: \"10000:01:1f.7\"}"}) {
    EXPECT_THAT(pfProblems(good), IsEmpty()) << good;
  }
  for (const char* bad :
       {"{}", "ens1", "{netdev: a, pci: \"0000:01:00.0\"}", "{netdev: \"\"}", "{netdev: a/b}",
        "{netdev: ..}", "{netdev: sixteencharacter}", "{pci: \"0000:01:20.0\"}",
        "{pci: \"0000:01:00.8\"}", "{pci: 0000:01:00.0}", "{pci: \"1:2\"}", "{near: gpu0}",
        "{rdma: a b}", "{mac: x}", "null"}) {
    EXPECT_THAT(pfProblems(bad), SizeIs(1)) << bad;
  }
}

TEST(MappingReader, RefusesDuplicateNamesAndNamesWithSpaces) {
  EXPECT_THAT(readMappingText("version: 1\nvm: a\nvfs:\n  - {name: r, pf: {netdev: e}}\n"
                              "  - {name: r, pf: {netdev: f}}\n")
                  .problems,
              ElementsAre(HasSubstr("m.yaml:5:12: the name `r` is used twice")));
  EXPECT_THAT(readMappingText("version: 1\nvm: a\nvfs: [{name: a b, pf: {netdev: e}}]\n").problems,
              SizeIs(1));
}

TEST(MappingReader, FindsCollisionsWithinOneFile) {
  const auto read = readMappingText(R"(version: 1
vm: a
vfs:
  - {name: r, pf: {netdev: e}, index: 1, mac: 52:54:00:ab:cd:ef}
  - {name: s, pf: {netdev: e}, index: 1, mac: 52-54-00-AB-CD-EF}
gpus:
  - {name: g, pci: "0000:3a:00.0"}
  - {name: h, pci: "3a:00.0"}
)");
  EXPECT_THAT(read.problems,
              ElementsAre(HasSubstr("MAC address 52:54:00:ab:cd:ef already belongs to r of a"),
                          HasSubstr("VF 1 of PF netdev e already belongs to r of a"),
                          HasSubstr("PCI function 0000:3a:00.0 already belongs to g of a")));
}

TEST(MappingReader, ReadsPciFunctionsFromBothKeys) {
  const auto read = readMappingText(R"(version: 1
vm: a
gpus:
  - {name: gpu0, pci: "0000:3a:00.0", clique: 1}
  - {name: disk0, pci: "0000:3b:00.0"}
functions:
  - {name: nvswitch0, pci: "0000:3c:00.0", driver: vfio-pci}
)");
  EXPECT_THAT(read.problems, IsEmpty());
  ASSERT_THAT(read.mapping.functions, SizeIs(3));
  EXPECT_EQ(read.mapping.functions[0].clique, 1U);
  EXPECT_EQ(read.mapping.functions[1].name, "disk0");
  EXPECT_EQ(read.mapping.functions[2].pci, parsePciAddress("0000:3c:00.0"));
  EXPECT_EQ(read.mapping.functions[2].driver, "vfio-pci");
}

TEST(MappingReader, AcceptsFunctionsAlone) {
  const auto read =
      readMappingText("version: 1\nvm: a\nfunctions:\n  - {name: disk0, pci: \"0000:3b:00.0\"}\n");
  EXPECT_THAT(read.problems, IsEmpty());
}

TEST(MappingReader, DistinguishesUnstatedFromExcludedGpuPath) {
  const auto gpu = [](const std::string& verify) -> std::optional<bool> {
    const ReadMapping read = readMappingText(withVf("", verify + "\n"));
    EXPECT_THAT(read.problems, IsEmpty()) << verify;
    return read.mapping.verify.gpu;
  };
  EXPECT_EQ(gpu(""), std::nullopt);
  EXPECT_EQ(gpu("verify: {on-start: report}"), std::nullopt);
  EXPECT_EQ(gpu("verify: {paths: [host]}"), false);
  EXPECT_EQ(gpu("verify: {paths: [gpu]}"), true);
  EXPECT_EQ(gpu("verify: {paths: [gpu, host]}"), true);
}

TEST(MappingReader, RefusesSameFunctionUnderBothKeys) {
  const auto read = readMappingText(
      "version: 1\nvm: a\ngpus:\n  - {name: g, pci: \"0000:3a:00.0\"}\n"
      "functions:\n  - {name: f, pci: \"3a:00.0\"}\n");
  EXPECT_THAT(read.problems,
              ElementsAre(HasSubstr("PCI function 0000:3a:00.0 already belongs to g of a")));
}

TEST(MappingReader, RefusesSameNameInVfsAndGpus) {
  const auto read = readMappingText(
      "version: 1\nvm: a\nvfs:\n  - {name: r, pf: {netdev: e}}\n"
      "gpus:\n  - {name: r, pci: \"0000:3a:00.0\"}\n");
  EXPECT_THAT(read.problems,
              ElementsAre(HasSubstr("m.yaml:6:12: the name `r` is used below `gpus:` and `vfs:`, "
                                    "first in line 4; choose another one")));
}

TEST(MappingReader, AcceptsSameGuidForNodeAndPort) {
  EXPECT_THAT(problems("infiniband: {node-guid: \"0x02000000000000aa\", "
                       "port-guid: \"0x02000000000000aa\"}"),
              IsEmpty());
}

TEST(HostReader, ChecksPolicies) {
  const std::string head = "version: 1\npfs:\n  - pf: {netdev: e}\n";
  EXPECT_THAT(hostProblems(head), IsEmpty());
  EXPECT_THAT(hostProblems(head + "    virtual-function-count: 4097\n"), SizeIs(1));
  EXPECT_THAT(hostProblems(head + "    embedded-switch-mode: switchdevs\n"),
              ElementsAre(HasSubstr("did you mean `switchdev`?")));
  EXPECT_THAT(hostProblems(head + "    mtu: 12\n    up: 3\n"), SizeIs(2));
  EXPECT_THAT(hostProblems(head + "  - pf: {netdev: e}\n"),
              ElementsAre(HasSubstr("host.yaml:4:5: PF netdev e is listed twice")));
  EXPECT_THAT(hostProblems("version: 1\npfs: [{pf: {near: gpu0}}]\n"), ::testing::Not(IsEmpty()));
}

TEST(HostReader, ChecksSoftRoceLinks) {
  const std::string head = "version: 1\nsoft-roce:\n  - {name: rxe0, netdev: eth0}\n";
  EXPECT_THAT(hostProblems("version: 1\n"), IsEmpty());
  EXPECT_THAT(hostProblems(head), IsEmpty());
  EXPECT_THAT(hostProblems(head + "  - {name: rxe1, netdev: eth1}\n"), IsEmpty());
  EXPECT_THAT(
      hostProblems(head + "  - {name: rxe0, netdev: eth1}\n"),
      ElementsAre(HasSubstr("host.yaml:4:5: SoftRoCE link rxe0 is listed twice, first in line 3")));
  EXPECT_THAT(hostProblems(head + "  - {name: rxe1, netdev: eth0}\n"),
              ElementsAre(HasSubstr("host.yaml:4:5: netdev eth0 is listed twice")));
  EXPECT_THAT(hostProblems(head + "  - {name: rxe1}\n"), SizeIs(1));
  EXPECT_THAT(hostProblems(head + "  - {name: \"rxe%d\", netdev: eth1}\n"), SizeIs(1));
  EXPECT_THAT(hostProblems(head + "  - {name: ../rxe, netdev: eth/1}\n"), SizeIs(2));
  EXPECT_THAT(hostProblems(head + "  - {name: rxe1, netdve: eth1}\n"),
              ::testing::Contains(HasSubstr("did you mean `netdev`?")));
}

}  // namespace
}  // namespace vfpass::config
