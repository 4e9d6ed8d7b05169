#include "vfpass/plan/host_policy.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fake/fake_kernel.hpp"
#include "vfpass/plan/owner_objections.hpp"

namespace vfpass::plan {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const PciAddress pfAddress{0, 0x3b, 0, 0};

HostInput inputWith(unsigned vfCount) {
  fake::FakeKernel kernel;
  HostInput input;
  input.pf = kernel.addPf("0000:3b:00.0", "ens1f0np0", 8, vfCount);
  input.pf.serial = "MT1";
  for (auto& vf : input.pf.vfs) {
    vf.driver.clear();
  }
  input.settings = kernel.readPfSettings(pfAddress);
  input.policy.place = {"host.yaml", 3, 5};
  return input;
}

Lease leaseOf(unsigned index, const std::string& domain = "train0") {
  Lease lease;
  lease.domainName = domain;
  lease.pf = pfAddress;
  vfOf(lease).index = index;
  return lease;
}

std::vector<std::string> stepsOf(const HostInput& input) {
  std::vector<std::string> lines;
  const auto decision = planHost(input);
  for (const auto& objection : decision.objections) {
    lines.push_back("objection: " + objection.message);
  }
  for (const auto& step : decision.plan.steps) {
    lines.push_back((step.disrupts ? "disrupts: " : "") + describe(step.action));
  }
  return lines;
}

Objection onlyObjection(const HostInput& input) {
  const auto decision = planHost(input);
  EXPECT_EQ(decision.objections.size(), 1U);
  EXPECT_THAT(decision.plan.steps, IsEmpty());
  return decision.objections.empty() ? Objection{} : decision.objections.front();
}

TEST(HostPlan, HasNoStepsWhenPfMatchesPolicy) {
  HostInput input = inputWith(4);
  input.policy.vfCount = 4;
  input.policy.eswitchMode = "legacy";
  input.policy.mtu = 1500;
  input.policy.up = false;
  EXPECT_THAT(stepsOf(input), IsEmpty());
  EXPECT_THAT(stepsOf(inputWith(4)), IsEmpty());
}

TEST(HostPlan, CreatesVfsAndSetsTheLink) {
  HostInput input = inputWith(0);
  input.policy.vfCount = 4;
  input.policy.mtu = 9000;
  input.policy.up = true;
  const auto plan = planHost(input).plan;
  EXPECT_EQ(plan.kind, PlanKind::host);
  EXPECT_EQ(describeWork(plan), "host apply of PF 0000:3b:00.0");
  ASSERT_EQ(plan.steps.size(), 4U);
  EXPECT_EQ(plan.steps[0].action, Action(CreateVfs{pfAddress, 4, false}));
  EXPECT_EQ(plan.steps[0].undo, std::vector<Action>{(RemoveVfs{pfAddress, true})});
  EXPECT_EQ(plan.steps[1].action, Action(ConfigureVfs{pfAddress, {}, neutralSettings(false)}));
  EXPECT_EQ(plan.steps[2].action, Action(SetMtu{pfAddress, 9000}));
  EXPECT_EQ(plan.steps[2].undo, std::vector<Action>{(SetMtu{pfAddress, 1500})});
  EXPECT_EQ(plan.steps[3].action, Action(SetLinkUp{pfAddress, true}));
  EXPECT_EQ(plan.steps[3].undo, std::vector<Action>{(SetLinkUp{pfAddress, false})});
  for (const auto& step : plan.steps) {
    EXPECT_FALSE(step.disrupts);
    EXPECT_FALSE(step.reason.empty());
  }
}

TEST(HostPlan, KeepsAttributesOfRemainingVfs) {
  HostInput input = inputWith(4);
  input.pf.vfs[1].settings.mac = *parseMacAddress("02:00:00:00:00:07");
  input.pf.vfs[3].settings.vlan = Vlan{7, 3, VlanProtocol::dot1q};
  input.policy.vfCount = 2;
  const auto steps = planHost(input).plan.steps;
  ASSERT_EQ(steps.size(), 3U);
  const auto& configure = std::get<ConfigureVfs>(steps[2].action);
  ASSERT_EQ(configure.vfs.size(), 2U);
  EXPECT_EQ(configure.vfs[1].index, 1U);
  EXPECT_EQ(configure.vfs[1].settings.mac, input.pf.vfs[1].settings.mac);
  EXPECT_FALSE(configure.vfs[1].settings.vlan.has_value());
  EXPECT_THAT(configure.vfs[1].required, IsEmpty());
}

TEST(HostPlan, KeepsVfsThatDefinitionsName) {
  HostInput input = inputWith(4);
  input.policy.vfCount = 2;
  input.users = {{input.pf.vfs[1].address, DeviceUser::Kind::domain, "kept"},
                 {input.pf.vfs[2].address, DeviceUser::Kind::pfsNetwork, "any"},
                 {input.pf.vfs[3].address, DeviceUser::Kind::domain, "hand0"}};
  const Objection named = onlyObjection(input);
  EXPECT_EQ(named.message,
            "PF 0000:3b:00.0 (ens1f0np0): cannot change to 2 VFs: VF 3 (0000:3b:00.4) is named by "
            "domain hand0");
  EXPECT_THAT(named.remedy, HasSubstr("raise virtual-function-count"));
  input.users[2].kind = DeviceUser::Kind::network;
  EXPECT_THAT(onlyObjection(input).message, HasSubstr("libvirt network hand0"));
  input.users.pop_back();
  EXPECT_THAT(planHost(input).objections, IsEmpty());
  input.policy.vfCount = 1;
  EXPECT_THAT(onlyObjection(input).message, HasSubstr("VF 1 (0000:3b:00.2) is named by"));
  input.policy.vfCount = 6;
  EXPECT_THAT(planHost(input).objections, IsEmpty()) << "the VFs come back";
}

TEST(HostPlan, KeepsVfsThatUnreadableDefinitionsMayName) {
  HostInput input = inputWith(4);
  input.policy.vfCount = 2;
  input.unknownUsers = {"domain broken"};
  const Objection unknown = onlyObjection(input);
  EXPECT_EQ(unknown.message,
            "PF 0000:3b:00.0 (ens1f0np0): cannot change to 2 VFs: the devices of domain broken are "
            "unknown, and may be VFs that are removed");
  EXPECT_THAT(unknown.remedy, HasSubstr("raise virtual-function-count"));
  input.unknownUsers.emplace_back("network pool");
  EXPECT_THAT(onlyObjection(input).message, HasSubstr("domain broken and 1 more are unknown"));
  input.policy.vfCount = 6;
  EXPECT_THAT(planHost(input).objections, IsEmpty()) << "the VFs come back";
}

TEST(HostPlan, FindsUsersWithoutLeases) {
  HostInput input = inputWith(3);
  const auto addressOf = [&](unsigned index) { return input.pf.vfs[index].address; };
  DomainSummary hand{{1}, "hand0", false, true, {{addressOf(0), "", {}}}, {}, {}};
  DomainSummary leased{{2}, "train0", false, true, {{addressOf(1), "ua-vfpass-rail0", {}}}, {}, {}};
  Lease lease = leaseOf(1);
  lease.domain = leased.uuid;
  lease.device = addressOf(1);
  const NetworkPool pool{"pool", {addressOf(2)}, {}};
  using Kind = DeviceUser::Kind;
  EXPECT_THAT(definedUsers(input.pf, {hand, leased}, {pool}, {lease}),
              ElementsAre(DeviceUser{addressOf(0), Kind::domain, "hand0"},
                          DeviceUser{addressOf(2), Kind::network, "pool"}));
  // libvirt also lists the VFs of an active network.
  const NetworkPool whole{"whole", {addressOf(0), addressOf(1)}, {"ens1f0np0"}};
  EXPECT_THAT(definedUsers(input.pf, {}, {whole}, {}),
              testing::Each(testing::Field(&DeviceUser::kind, Kind::pfsNetwork)));
}

TEST(HostPlan, InverseOfRemovalRestoresAttributesOfAllVfs) {
  HostInput input = inputWith(4);
  input.pf.vfs[3].settings.vlan = Vlan{7, 3, VlanProtocol::dot1q};
  input.policy.vfCount = 0;
  const auto steps = planHost(input).plan.steps;
  ASSERT_EQ(steps.size(), 1U);
  ASSERT_EQ(steps[0].undo.size(), 2U);
  EXPECT_EQ(steps[0].undo[0], Action(CreateVfs{pfAddress, 4, false, true}));
  const auto& configure = std::get<ConfigureVfs>(steps[0].undo[1]);
  EXPECT_EQ(configure.vfs.back().index, 3U);
  EXPECT_EQ(configure.vfs.back().settings.vlan, input.pf.vfs[3].settings.vlan);
}

TEST(HostPlan, InverseOfRemovalRestoresDriverBindings) {
  HostInput input = inputWith(2);
  input.policy.vfCount = 0;
  for (auto& vf : input.pf.vfs) {
    vf.driver = "mlx5_core";
  }
  EXPECT_TRUE(std::get<CreateVfs>(planHost(input).plan.steps[0].undo[0]).probe);
  input.pf.vfs[0].driver.clear();  // only one of them was bound to the driver
  const auto undo = planHost(input).plan.steps[0].undo;
  EXPECT_FALSE(std::get<CreateVfs>(undo.front()).probe);
  EXPECT_EQ(undo.back(), Action(BindDriver{input.pf.vfs[1].address, "mlx5_core", ""}));
}

std::vector<Action> undoOfRemoval(const HostInput& input) {
  return planHost(input).plan.steps.at(0).undo;
}

TEST(HostPlan, KeepsVfsMigratable) {
  HostInput input = inputWith(2);
  input.pf.driver = "mlx5_core";
  input.settings.eswitchMode = EswitchMode::switchdev;
  input.pf.vfs[1].migratable = true;
  input.policy.vfCount = 3;
  const Action unbound = BindDriver{input.pf.vfs[1].address, "", "", true};
  EXPECT_EQ(planHost(input).plan.steps.back().action, unbound);
  EXPECT_EQ(undoOfRemoval(input).back(), unbound);
  EXPECT_EQ(describe(unbound), "make 0000:3b:00.2 migratable, without a driver");

  input.policy.probeVfs = true;
  const Action bound = BindDriver{input.pf.vfs[1].address, "mlx5_core", "", true};
  EXPECT_EQ(planHost(input).plan.steps.back().action, bound);
  EXPECT_EQ(describe(bound), "make 0000:3b:00.2 migratable and bind it to mlx5_core");
}

TEST(HostPlan, AsksForNoMigratableVfInLegacyMode) {
  HostInput input = inputWith(2);
  input.pf.driver = "mlx5_core";
  input.settings.eswitchMode = EswitchMode::switchdev;
  input.pf.vfs[1].migratable = true;
  input.policy.eswitchMode = "legacy";
  EXPECT_FALSE(std::holds_alternative<BindDriver>(planHost(input).plan.steps.back().action));
  EXPECT_TRUE(std::holds_alternative<BindDriver>(undoOfRemoval(input).back()))
      << "a failed change ends in switchdev mode again";
}

TEST(HostPlan, BindsDriversAfterSettingMac) {
  HostInput input = inputWith(2);
  input.pf.vfs[1].settings.mac = *parseMacAddress("02:00:00:00:00:07");
  input.policy.vfCount = 3;
  input.policy.probeVfs = true;
  EXPECT_THAT(stepsOf(input),
              ElementsAre(HasSubstr("remove the VFs"), HasSubstr("not probed"),
                          HasSubstr("mac 02:00:00:00:00:07"), HasSubstr("bind 0000:3b:00.1"),
                          HasSubstr("bind 0000:3b:00.2"), HasSubstr("bind 0000:3b:00.3")));
}

ConfigureVfs lastConfiguration(const HostInput& input) {
  ConfigureVfs configure;
  for (const auto& step : planHost(input).plan.steps) {
    if (const auto* found = std::get_if<ConfigureVfs>(&step.action)) {
      configure = *found;
    }
  }
  return configure;
}

TEST(HostPlan, GivesNewVfsNeutralValues) {
  HostInput input = inputWith(0);
  input.policy.vfCount = 4;
  VfSettings driven = neutralSettings(false);
  driven.spoofCheck.reset();
  input.policy.probeVfs = true;
  EXPECT_EQ(lastConfiguration(input).otherwise, driven) << "the host sends with these VFs";
}

TEST(HostPlan, AsksForNothingThatSwitchdevModeLacks) {
  HostInput input = inputWith(2);
  input.pf.vfs[0].settings.trust = true;
  input.policy.eswitchMode = "switchdev";
  const auto configure = lastConfiguration(input);
  for (const Attribute attribute : legacyOnlyAttributes) {
    EXPECT_EQ(only(*configure.otherwise, {attribute}), VfSettings{});
    for (const auto& change : configure.vfs) {
      EXPECT_EQ(only(change.settings, {attribute}), VfSettings{});
    }
  }
  const auto undo = std::get<ConfigureVfs>(planHost(input).plan.steps[0].undo.at(1));
  EXPECT_EQ(undo.vfs.at(0).settings.trust, true) << "the earlier mode has it";
}

// mlx5 keeps the netdev with its settings, but VFs that exist meanwhile lose theirs.
TEST(HostPlan, EswitchModeChangesWithoutVfsAndLeavesTheLinkAlone) {
  HostInput input = inputWith(2);
  input.settings.link = LinkSettings{9000, true};
  input.policy.eswitchMode = "switchdev";
  EXPECT_THAT(stepsOf(input), ElementsAre("remove the VFs of PF 0000:3b:00.0",
                                          "set the eswitch mode of PF 0000:3b:00.0 to switchdev",
                                          HasSubstr("create 2 VFs"), HasSubstr("configure")));
  const auto steps = planHost(input).plan.steps;
  EXPECT_EQ(steps[0].reason,
            "VFs that exist while the eswitch mode changes lose their rates and link state");
  EXPECT_THAT(steps[1].undo, ElementsAre(Action(SetEswitchMode{pfAddress, EswitchMode::legacy})));
  input.policy.mtu = 1500;
  EXPECT_EQ(stepsOf(input).back(), "set the MTU of PF 0000:3b:00.0 to 1500");
}

// Each fact that makes a change disruptive, with the change that it affects.
struct Disruption {
  const char* name;
  void (*prepare)(HostInput&);
  const char* named;
};

class DisruptionTest : public testing::TestWithParam<Disruption> {};

TEST_P(DisruptionTest, NeedsConsentAndIsMarked) {
  HostInput input = inputWith(0);
  GetParam().prepare(input);
  const auto objection = onlyObjection(input);
  EXPECT_EQ(objection.code, ExitCode::refused);
  EXPECT_THAT(objection.message, HasSubstr("would disrupt the host"));
  EXPECT_THAT(objection.message, HasSubstr(GetParam().named));
  EXPECT_THAT(objection.remedy, HasSubstr("--allow-disruption"));
  for (const bool inPolicy : {false, true}) {
    HostInput allowed = input;
    (inPolicy ? allowed.policy.allowDisruption : allowed.allowDisruption) = true;
    const auto decision = planHost(allowed);
    EXPECT_THAT(decision.objections, IsEmpty());
    ASSERT_FALSE(decision.plan.steps.empty());
    EXPECT_TRUE(decision.plan.steps[0].disrupts);
    EXPECT_THAT(decision.plan.steps[0].reason, HasSubstr(GetParam().named));
  }
}

INSTANTIATE_TEST_SUITE_P(
    Table, DisruptionTest,
    testing::Values(Disruption{"bond",
                               [](HostInput& input) {
                                 input.pf.uppers = {"bond0"};
                                 input.policy.vfCount = 4;
                               },
                               "netdev ens1f0np0 is below bond0"},
                    Disruption{"address",
                               [](HostInput& input) {
                                 input.pf.addresses = {"192.0.2.1/24"};
                                 input.policy.vfCount = 4;
                               },
                               "netdev ens1f0np0 has address 192.0.2.1/24"},
                    Disruption{"lag",
                               [](HostInput& input) {
                                 input.pf.lag = {"bond0", "rocep1s0", {}};
                                 input.policy.vfCount = 4;
                               },
                               "RDMA device rocep1s0 removed"},
                    Disruption{"eswitch",
                               [](HostInput& input) {
                                 input.pf.netdevs[0].up = true;
                                 input.policy.eswitchMode = "switchdev";
                               },
                               "netdev ens1f0np0 is up and loses its link for a moment"},
                    Disruption{"down",
                               [](HostInput& input) {
                                 input.settings.link->up = true;
                                 input.policy.up = false;
                               },
                               "netdev ens1f0np0 is up"}),
    [](const auto& given) { return std::string(given.param.name); });

TEST(HostPlan, RoceLagSurvivesVfsInSwitchdevMode) {
  HostInput input = inputWith(0);
  input.pf.lag = {"bond0", "rocep1s0", input.pf.address};
  input.settings.eswitchMode = EswitchMode::switchdev;
  input.policy.vfCount = 4;
  EXPECT_THAT(stepsOf(input), ElementsAre(HasSubstr("create 4 VFs"), HasSubstr("configure")));
  EXPECT_FALSE(std::get<CreateVfs>(planHost(input).plan.steps[0].action).lagDevicePf);
}

TEST(HostPlan, ConsentDoesNotDisruptRdmaUsersOfLag) {
  HostInput input = inputWith(0);
  input.pf.lag = {"bond0", "rocep1s0", input.pf.address};
  input.policy.vfCount = 4;
  input.allowDisruption = true;
  EXPECT_EQ(std::get<CreateVfs>(planHost(input).plan.steps.at(0).action).lagDevicePf,
            input.pf.address);
}

TEST(HostPlan, HarmlessLinkChangesNeedNoConsent) {
  HostInput input = inputWith(0);
  input.pf.uppers = {"bond0"};
  input.policy.mtu = 9000;
  input.policy.up = true;
  EXPECT_EQ(planHost(input).plan.steps.size(), 2U);
}

struct Mistake {
  const char* name;
  void (*prepare)(HostInput&);
  ExitCode code;
  const char* message;
};

class MistakeTest : public testing::TestWithParam<Mistake> {};

TEST_P(MistakeTest, IsReported) {
  HostInput input = inputWith(0);
  GetParam().prepare(input);
  const auto objection = onlyObjection(input);
  EXPECT_EQ(objection.code, GetParam().code);
  EXPECT_THAT(objection.message, HasSubstr(GetParam().message));
  EXPECT_FALSE(objection.remedy.empty());
}

INSTANTIATE_TEST_SUITE_P(
    Table, MistakeTest,
    testing::Values(Mistake{"serial", [](HostInput& input) { input.policy.serial = "MT2"; },
                            ExitCode::refused, "has serial number MT1, but host.yaml expects MT2"},
                    Mistake{"noSerial",
                            [](HostInput& input) {
                              input.pf.serial.clear();
                              input.policy.serial = "MT2";
                            },
                            ExitCode::refused, "no readable serial number"},
                    Mistake{"count", [](HostInput& input) { input.policy.vfCount = 9; },
                            ExitCode::badInput, "9 VFs requested"},
                    Mistake{"netdev",
                            [](HostInput& input) {
                              input.pf.netdevs.clear();
                              input.policy.mtu = 9000;
                            },
                            ExitCode::failed,
                            "cannot set `mtu`: it is bound to mlx5_core, but has neither netdev"},
                    Mistake{"ipoib",
                            [](HostInput& input) {
                              input.pf.netdevs.clear();
                              input.pf.linkLayer = LinkLayer::infiniband;
                              input.pf.rdma = {{"mlx5_0"}};
                              input.pf.hasVfFiles = true;
                              input.policy.up = true;
                            },
                            ExitCode::failed, "has no netdev for `mtu` or `up`"},
                    Mistake{"deadCard",
                            [](HostInput& input) {
                              input.pf.netdevs.clear();
                              input.settings.eswitchMode.reset();
                              input.policy.eswitchMode = "switchdev";
                            },
                            ExitCode::failed,
                            "cannot set `embedded-switch-mode`: it is bound to mlx5_core, but has "
                            "neither netdev nor RDMA device"},
                    Mistake{"detached",
                            [](HostInput& input) {
                              input.pf.netdevDetached = true;
                              input.policy.eswitchMode = "switchdev";
                            },
                            ExitCode::failed,
                            "cannot set `embedded-switch-mode`: it has a netdev that its driver "
                            "has detached"},
                    Mistake{"eswitch",
                            [](HostInput& input) {
                              input.settings.eswitchMode.reset();
                              input.policy.eswitchMode = "switchdev";
                            },
                            ExitCode::failed, "its driver reports no eswitch mode over devlink"},
                    Mistake{"room",
                            [](HostInput& input) {
                              input.leases = {leaseOf(4)};
                              input.policy.vfCount = 4;
                            },
                            ExitCode::refused, "VF 4 is leased to domain train0"},
                    Mistake{"openWork",
                            [](HostInput& input) {
                              Plan open{PlanKind::attach, {}, "train0", {}, {}};
                              open.steps.push_back({CreateVfs{pfAddress, 4, false}, {}, ""});
                              input.openWork = {open};
                              input.policy.vfCount = 4;
                            },
                            ExitCode::refused, "attach of domain train0"}),
    [](const auto& given) { return std::string(given.param.name); });

TEST(HostPlan, ReportsAllMistakesAtOnce) {
  HostInput input = inputWith(0);
  input.policy.serial = "MT2";
  input.policy.vfCount = 9;
  const auto decision = planHost(input);
  EXPECT_EQ(decision.objections.size(), 2U);
  EXPECT_EQ(worstCode(decision.objections), ExitCode::badInput);
}

TEST(HostPlan, IgnoresUnfinishedOperationOnAnotherPf) {
  HostInput input = inputWith(0);
  Plan open;
  open.steps.push_back({CreateVfs{{0, 0x3b, 0, 1}, 4, false}, {}, ""});
  input.openWork = {open};
  input.policy.vfCount = 4;
  EXPECT_THAT(planHost(input).objections, IsEmpty());
}

struct User {
  const char* name;
  void (*prepare)(HostInput&);
  const char* named;
};

class VfUserTest : public testing::TestWithParam<User> {};

TEST_P(VfUserTest, KeepsItsVf) {
  HostInput input = inputWith(4);
  GetParam().prepare(input);
  input.settings.link->up = true;
  input.allowDisruption = true;  // does not permit disrupting VFs in use
  for (const char* change : {"count", "mode", "down"}) {
    HostInput changed = input;
    if (change == std::string("count")) {
      changed.policy.vfCount = 6;
    } else if (change == std::string("mode")) {
      changed.policy.eswitchMode = "switchdev";
    } else {
      changed.policy.up = false;
    }
    const auto objection = onlyObjection(changed);
    EXPECT_EQ(objection.code, ExitCode::refused) << change;
    EXPECT_THAT(objection.message, HasSubstr(GetParam().named)) << change;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Table, VfUserTest,
    testing::Values(User{"lease", [](HostInput& input) { input.leases = {leaseOf(1, "train\n0")}; },
                         "VF 1 is leased to domain train\\x0a0"},
                    User{"vfioDriver",
                         [](HostInput& input) { input.pf.vfs[2].driver = "mlx5_vfio_pci"; },
                         "VF 2 (0000:3b:00.3) is bound to mlx5_vfio_pci"},
                    User{"vfioOpen", [](HostInput& input) { input.pf.vfs[2].vfioInUse = true; },
                         "is held open through VFIO"},
                    User{"netdevUp",
                         [](HostInput& input) {
                           input.pf.vfs[0].netdevs = {{"up0", 5, true, false}};
                         },
                         "VF 0's netdev up0 is up"},
                    User{"enslaved",
                         [](HostInput& input) {
                           input.pf.vfs[0].netdevs = {{"slave0", 5, false, true}};
                         },
                         "slave0 is in a bond"},
                    User{"holder",
                         [](HostInput& input) {
                           input.holders = {{HolderKind::rdma,
                                             input.pf.vfs[3].address,
                                             "ib_write_bw (pid 7) has a queue pair",
                                             "stop it",
                                             {}}};
                         },
                         "VF 3 (0000:3b:00.4): ib_write_bw (pid 7) has a queue pair"}),
    [](const auto& given) { return std::string(given.param.name); });

TEST(HostPlan, IgnoresIdleVfsAndLeasesOfOtherPfs) {
  HostInput input = inputWith(2);
  input.pf.vfs[0].netdevs = {{"idle0", 5, false, false}};
  input.leases = {leaseOf(0)};
  input.leases[0].pf.function = 1;
  input.policy.vfCount = 4;
  EXPECT_THAT(planHost(input).objections, IsEmpty());
}

TEST(HostPlan, AbbreviatesLongListOfUsers) {
  HostInput input = inputWith(6);
  for (auto& vf : input.pf.vfs) {
    vf.driver = "vfio-pci";
  }
  input.policy.vfCount = 8;
  EXPECT_THAT(onlyObjection(input).message, HasSubstr(", and 2 more"));
}

}  // namespace
}  // namespace vfpass::plan
