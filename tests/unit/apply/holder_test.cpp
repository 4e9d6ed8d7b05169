#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test_host.hpp"
#include "vfpass/apply/recover.hpp"
#include "vfpass/plan/host_policy.hpp"
#include "vfpass/plan/plan_hook.hpp"

namespace vfpass::apply {
namespace {

using testing::HasSubstr;

const PciAddress gpu = *parsePciAddress("0000:03:00.0");

// A new action that changes a device needs an entry below whose plan contains it.
static_assert(std::variant_size_v<Action> == 19);

// One way in which vfpass changes devices. `plan` is nullptr if recover() does the work.
struct Path {
  const char* name;
  PlanKind kind;
  unsigned vfs;  ///< of the PF at the start
  void (*arrange)(Host&);
  Plan (*plan)(Host&);
  PciAddress (*device)(Host&);
  /// Planning avoids held devices; only a later holder is refused.
  bool plansAround = false;
};

void PrintTo(const Path& path, std::ostream* out) { *out << path.name; }

PciAddress vfOf(Host& host, unsigned index) {
  return host.kernel.pfs.begin()->second.vfs[index].address;
}
PciAddress firstVf(Host& host) { return vfOf(host, 0); }
PciAddress secondVf(Host& host) { return vfOf(host, 1); }
PciAddress spareVf(Host& host) { return vfOf(host, 5); }
PciAddress theGpu(Host& /*host*/) { return gpu; }

std::vector<Lease> leasesOf(Host& host) { return host.leases(); }

void nameIndexes(Host& host) {
  host.mapping.vfs[0].index = 0;
  host.mapping.vfs[1].index = 1;
}
void attached(Host& host) { host.attach(); }
void attachedWithEditedVlan(Host& host) {
  host.attach();
  host.mapping.vfs[0].settings.vlan = Vlan{200, 0, VlanProtocol::dot1q};
}
void attachedWithOneEntryLess(Host& host) {
  host.attach();
  host.mapping.vfs.pop_back();
}
void withGpu(Host& host) {
  host.kernel.addFunction(toString(gpu), "nvidia");
  host.mapping.functions = {{"gpu0", gpu, {}}};
}
void attachedGpu(Host& host) {
  withGpu(host);
  host.attach();
}
// The GPU stays on vfio-pci, so that a start only activates its partition.
void attachedPartition(Host& host) {
  withGpu(host);
  shareNvlink(host, gpu);
  host.attach();
}
void attachedAndScrubbed(Host& host) {
  host.attach();
  for (auto& vf : host.kernel.pfs.begin()->second.vfs) {
    vf.settings.vlan = Vlan{};
  }
}
void started(Host& host) {
  host.attach();
  host.execute(host.preparePlan());
}
void killedBeforeDefine(Host& host) {
  const Plan plan = host.attachPlan();
  host.hypervisor.killBeforeDefine = true;
  EXPECT_THROW(host.execute(plan), fake::Killed);
  host.hypervisor.killBeforeDefine = false;
}
void detachKilledAfterDefine(Host& host) {
  host.attach();
  const Plan plan = host.detachPlan();
  host.hypervisor.killAfterDefine = true;
  EXPECT_THROW(host.execute(plan), fake::Killed);
  host.hypervisor.killAfterDefine = false;
}

Plan attachPlan(Host& host) { return host.attachPlan(); }
Plan detachPlan(Host& host) { return host.detachPlan(); }
Plan preparePlan(Host& host) { return host.preparePlan(); }
Plan releasePlan(Host& host) {
  return plan::planRelease(host.uuid, "train0", leasesOf(host), host.kernel.inventory(),
                           host.kernel.bootId());
}
Plan gcPlan(Host& host) {
  const auto leases = leasesOf(host);
  return {PlanKind::detach,
          host.uuid,
          "train0",
          plan::planRestore(leases, leases, host.kernel.inventory(), {}).steps,
          {}};
}

Plan hostPlan(Host& host, const PfPolicy& policy) {
  plan::HostInput input;
  input.pf = host.kernel.pfs.begin()->second;
  input.settings = host.kernel.readPfSettings(input.pf.address);
  input.holders = host.kernel.inventory().holders;
  input.policy = policy;
  input.allowDisruption = true;
  const auto decision = plan::planHost(input);
  plan::throwObjections("host apply", decision.objections);
  return decision.plan;
}
Plan countPlan(Host& host) {
  PfPolicy policy;
  policy.vfCount = 6;
  return hostPlan(host, policy);
}
Plan modePlan(Host& host) {
  PfPolicy policy;
  policy.eswitchMode = "switchdev";
  return hostPlan(host, policy);
}
Plan linkDownPlan(Host& host) {
  PfPolicy policy;
  policy.up = false;
  return hostPlan(host, policy);
}
void linkUp(Host& host) { host.kernel.pfSettings.begin()->second.link->up = true; }
void nothing(Host& /*host*/) {}

const Path paths[] = {
    {"attach", PlanKind::attach, 4, nameIndexes, attachPlan, firstVf},
    {"attach of a function", PlanKind::attach, 4, withGpu, attachPlan, theGpu},
    {"attach with an edited VLAN", PlanKind::attach, 4, attachedWithEditedVlan, attachPlan,
     firstVf},
    {"attach with an entry removed", PlanKind::attach, 4, attachedWithOneEntryLess, attachPlan,
     secondVf},
    {"detach", PlanKind::detach, 4, attached, detachPlan, firstVf},
    {"detach of a function", PlanKind::detach, 4, attachedGpu, detachPlan, theGpu},
    {"last detach, which removes the VFs", PlanKind::detach, 0, attached, detachPlan, spareVf,
     true},
    {"gc", PlanKind::detach, 4, attached, gcPlan, firstVf},
    {"prepare", PlanKind::prepare, 4, attachedAndScrubbed, preparePlan, firstVf},
    {"prepare of a partition", PlanKind::prepare, 4, attachedPartition, preparePlan, theGpu},
    {"release", PlanKind::release, 4, started, releasePlan, firstVf},
    {"host apply, another VF count", PlanKind::host, 4, nothing, countPlan, secondVf},
    {"host apply, another eswitch mode", PlanKind::host, 4, nothing, modePlan, secondVf},
    {"host apply, link down", PlanKind::host, 4, linkUp, linkDownPlan, secondVf},
    {"recover, backwards", PlanKind::attach, 4, killedBeforeDefine, nullptr, firstVf},
    {"recover, forwards", PlanKind::detach, 4, detachKilledAfterDefine, nullptr, firstVf},
};

Holder foreign(HolderKind kind, const PciAddress& device) {
  return {kind, device, "somebody-else (pid 99) has it", "stop somebody-else", std::nullopt};
}

// Runs the plan or expects its refusal, with exit code, message and remedy.
void expectRefused(const std::function<void()>& act) {
  try {
    act();
    ADD_FAILURE() << "was not refused";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::refused) << error.what();
    const std::string text = std::string(error.what()) + error.remedy();
    EXPECT_THAT(text, HasSubstr("somebody-else (pid 99) has it"));
    EXPECT_THAT(text, HasSubstr("stop somebody-else"));
  }
}

class HolderTest : public testing::TestWithParam<std::tuple<Path, HolderKind>> {
 protected:
  HolderTest() : path(std::get<0>(GetParam())), kind(std::get<1>(GetParam())), host(path.vfs) {
    path.arrange(host);
    effects = host.kernel.effects;
    before = host.fingerprint();
  }

  void hold() { host.kernel.holders.push_back(foreign(kind, path.device(host))); }

  void expectUnchanged() {
    EXPECT_EQ(host.kernel.effects, effects);
    EXPECT_EQ(host.fingerprint(), before);
  }

  Path path;
  HolderKind kind;
  Host host;
  int effects = 0;
  std::string before;
};

TEST_P(HolderTest, HeldDeviceIsLeftAlone) {
  hold();
  if (path.plansAround) {
    host.execute(path.plan(host));
    EXPECT_FALSE(host.kernel.pfs.begin()->second.vfs.empty()) << "one of them is in use";
    return;
  }
  expectRefused([&] {
    path.plan == nullptr ? void(host.recoverAll()) : void(host.execute(path.plan(host)));
  });
  expectUnchanged();
}

// Recovery makes no new plan, so no holder can appear in between.
class LaterHolderTest : public HolderTest {};

std::vector<Path> plannedPaths() {
  std::vector<Path> planned;
  std::copy_if(std::begin(paths), std::end(paths), std::back_inserter(planned),
               [](const Path& path) { return path.plan != nullptr; });
  return planned;
}

TEST_P(LaterHolderTest, DeviceHeldAfterPlanningIsLeftAlone) {
  const Plan plan = path.plan(host);
  EXPECT_EQ(plan.kind, path.kind);
  hold();
  expectRefused([&] { host.execute(plan); });
  expectUnchanged();
  EXPECT_TRUE(host.recoverAll().empty()) << "no operation was begun";
}

std::string nameOf(const testing::TestParamInfo<HolderTest::ParamType>& info) {
  std::string name = std::string(std::get<0>(info.param).name) + "_" +
                     std::string(toString(std::get<1>(info.param)));
  std::replace_if(
      name.begin(), name.end(), [](char c) { return std::isalnum(c) == 0; }, '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(EveryPathAndKind, HolderTest,
                         testing::Combine(testing::ValuesIn(paths), testing::ValuesIn(holderKinds)),
                         nameOf);

INSTANTIATE_TEST_SUITE_P(EveryPathAndKind, LaterHolderTest,
                         testing::Combine(testing::ValuesIn(plannedPaths()),
                                          testing::ValuesIn(holderKinds)),
                         nameOf);

TEST(HolderPaths, CoverEveryKindOfPlan) {
  for (const PlanKind kind : planKinds) {
    EXPECT_TRUE(std::any_of(std::begin(paths), std::end(paths), [&](const Path& path) {
      return path.kind == kind;
    })) << toString(kind);
  }
}

TEST(HolderGate, HolderBetweenTwoStepsOfADetachRestoresTheXml) {
  Host host;
  host.attach();
  const std::string before = host.fingerprint();
  const Plan plan = host.detachPlan();
  host.hypervisor.afterDefine = [&] {
    host.hypervisor.afterDefine = nullptr;
    host.kernel.holders = {foreign(HolderKind::vfio, firstVf(host))};
  };
  expectRefused([&] { host.execute(plan); });
  EXPECT_EQ(host.fingerprint(), before);
  EXPECT_TRUE(host.recoverAll().empty());
}

TEST(HolderGate, DetachYieldsToAStartWithTheOldXml) {
  Host host;
  host.attach();
  const Plan plan = host.detachPlan();
  const Plan prepare = host.preparePlan();
  host.hypervisor.afterDefine = [&] {
    host.hypervisor.afterDefine = nullptr;
    host.execute(prepare);
  };
  EXPECT_THROW(host.execute(plan), Error);
  EXPECT_TRUE(domain::parseDomain(host.xml()).managed) << "the XML is restored";
  EXPECT_EQ(host.leases()[0].state, LeaseState::starting);
  EXPECT_EQ(host.kernel.pfs.begin()->second.vfs[0].driver, "vfio-pci");
  EXPECT_TRUE(host.recoverAll().empty());
}

TEST(HolderGate, RecoveredDetachYieldsToARunningGuest) {
  Host host;
  detachKilledAfterDefine(host);
  Holder own = foreign(HolderKind::vfio, firstVf(host));
  own.domain = host.uuid;
  host.kernel.holders = {own};
  EXPECT_EQ(host.recoverAll().size(), 1U);
  EXPECT_TRUE(domain::parseDomain(host.xml()).managed);
  EXPECT_EQ(host.kernel.pfs.begin()->second.vfs[0].driver, "vfio-pci");
  EXPECT_TRUE(host.recoverAll().empty());
}

class OwnGuestTest : public testing::Test {
 protected:
  OwnGuestTest() {
    host.start();
    host.scope = {true, true};
    host.attach();
    for (unsigned index = 0; index < 2; ++index) {
      Holder own = foreign(HolderKind::vfio, vfOf(host, index));
      own.domain = host.uuid;
      host.kernel.holders.push_back(own);
    }
  }

  Host host;
};

TEST_F(OwnGuestTest, AllowsChangingSwitchSettings) {
  host.mapping.vfs[0].settings.vlan = Vlan{200, 0, VlanProtocol::dot1q};
  host.attach();
  EXPECT_EQ(host.kernel.pfs.begin()->second.vfs[0].settings.vlan->id, 200);
}

TEST_F(OwnGuestTest, RefusesAnotherDomainOnTheSameVf) {
  host.kernel.holders[0].domain = parseUuid("0f5e9a3c-1111-4222-8333-000000000000");
  host.mapping.vfs[0].settings.vlan = Vlan{200, 0, VlanProtocol::dot1q};
  expectRefused([&] { host.attach(); });
}

TEST_F(OwnGuestTest, WaitsForUnpluggedDevices) {
  int looks = 0;
  host.kernel.beforeFindHolders = [&] {
    if (++looks == 4) {  // QEMU closes the device some time after the event
      host.kernel.holders.clear();
    }
  };
  host.execute(host.detachPlan());
  EXPECT_GE(looks, 4);
  EXPECT_EQ(host.kernel.pfs.begin()->second.vfs[0].driver, "mlx5_core");
}

// The action is in effect only if the firmware's part is, too.
TEST(HolderGate, HeldVfIsNotBoundAgainToMakeItMigratable) {
  Host host;
  host.attach();
  PhysicalFunction& pf = host.kernel.pfs.begin()->second;
  host.kernel.pfSettings[pf.address].eswitchMode = EswitchMode::switchdev;
  VirtualFunction& vf = pf.vfs[0];
  vf.driver = vf.driverOverride = "mlx5_vfio_pci";
  vf.migratable = false;
  const BindDriver bind{vf.address, vf.driver, vf.driver};
  const Plan plan{PlanKind::attach, host.uuid, "train0", {{bind, {}, "it is not migratable"}}, {}};
  host.kernel.holders = {foreign(HolderKind::vfio, vf.address)};
  expectRefused([&] { host.execute(plan); });
  EXPECT_EQ(vf.migratable, false);
  vf.migratable = true;
  EXPECT_NO_THROW(host.execute(plan));
}

TEST(HolderGate, AllowancesWaiveOnlyNetdevsAndUnknownHolders) {
  for (const HolderKind kind : holderKinds) {
    for (const Allowance allowance : {Allowance::netdevInUse, Allowance::unknownHolder}) {
      const bool waived = (kind == HolderKind::netdev && allowance == Allowance::netdevInUse) ||
                          (kind == HolderKind::unknown && allowance == Allowance::unknownHolder);
      Host host;
      nameIndexes(host);
      host.mapping.allow = {allowance};
      host.kernel.holders = {foreign(kind, firstVf(host))};
      if (waived) {
        host.attach();
        EXPECT_EQ(host.kernel.pfs.begin()->second.vfs[0].driver, "vfio-pci");
      } else {
        expectRefused([&] { host.attach(); });
      }
    }
  }
}

// mlx5 removes the RDMA device of a LAG when it creates VFs; the PF's netdev stays.
TEST(HolderGate, CreatesVfsOnlyWithoutRdmaUsersOfLag) {
  for (const HolderKind kind : {HolderKind::netdev, HolderKind::rdma}) {
    Host host(0);
    host.mapping.allow = {Allowance::disruption};
    PhysicalFunction& pf = host.kernel.pfs.begin()->second;
    pf.lag = {"bond0", "rocep1s0", pf.address};
    host.kernel.holders = {foreign(kind, pf.address)};
    if (kind == HolderKind::rdma) {
      expectRefused([&] { host.attach(); });
    } else {
      host.attach();
    }
    EXPECT_EQ(pf.vfs.empty(), kind == HolderKind::rdma);
  }
}

TEST(HolderGate, RollbackKeepsCreatedVfsThatAnotherVmUses) {
  Host host(0);
  const Plan plan = host.attachPlan();
  host.hypervisor.killBeforeDefine = true;
  EXPECT_THROW(host.execute(plan), fake::Killed);
  host.hypervisor.killBeforeDefine = false;
  host.kernel.holders = {foreign(HolderKind::vfio, spareVf(host))};
  EXPECT_EQ(host.recoverAll().size(), 1U);
  EXPECT_THAT(host.recoveryWarnings,
              testing::ElementsAre(HasSubstr("kept the new VFs of PF 0000:01:00.0: ")));
  EXPECT_FALSE(host.kernel.pfs.begin()->second.vfs.empty());
  EXPECT_TRUE(host.leases().empty());
  EXPECT_TRUE(host.recoverAll().empty());
  host.attach();
}

TEST(HolderGate, StepWithUnknownOutcomeStaysJournaledUntilItsWriteReturns) {
  Host host;
  const std::string driver = host.kernel.pfs.begin()->second.vfs[0].driver;
  nameIndexes(host);
  host.kernel.hangingUnbinds = {firstVf(host)};
  EXPECT_THROW(host.attach(), TimeoutError);
  EXPECT_EQ(host.kernel.pfs.begin()->second.vfs[1].driver, driver)
      << "bound together with the first";
  try {
    host.recoverAll();
    ADD_FAILURE() << "the write has not returned yet";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::refused) << error.what();
  }
  host.kernel.finishPendingWrites();
  EXPECT_EQ(host.kernel.pfs.begin()->second.vfs[0].driver, "") << "the late unbinding";
  EXPECT_EQ(host.recoverAll().size(), 1U);
  EXPECT_EQ(host.kernel.pfs.begin()->second.vfs[0].driver, driver);
  EXPECT_TRUE(host.leases().empty());
}

TEST(HolderGate, CreatedVfsAreRemovedOnceThePendingWriteHasReturned) {
  Host other(0);
  other.attach();
  Host host(0);
  const Plan plan = host.attachPlan();
  const std::string before = host.fingerprint();
  host.kernel.hangingUnbinds = {firstVf(other)};  // the same address
  EXPECT_THROW(host.execute(plan), TimeoutError);
  EXPECT_FALSE(host.kernel.pfs.begin()->second.vfs.empty()) << "the write concerns one of them";
  EXPECT_THROW(host.recoverAll(), Error) << "the write has not returned yet";
  host.kernel.finishPendingWrites();
  EXPECT_EQ(host.recoverAll().size(), 1U);
  EXPECT_EQ(host.fingerprint(), before);
  EXPECT_TRUE(host.recoverAll().empty());
}

TEST(HolderGate, RemedyNamesRecoverOnce) {
  for (const char* remedy : {"stop it", "stop it, then run `vfpass recover`"}) {
    Host host;
    killedBeforeDefine(host);
    host.kernel.holders = {foreign(HolderKind::vfio, firstVf(host))};
    host.kernel.holders[0].remedy = remedy;
    try {
      host.recoverAll();
      ADD_FAILURE() << "was not refused";
    } catch (const Error& error) {
      EXPECT_EQ(error.remedy(), "stop it, then run `vfpass recover`");
    }
  }
}

TEST(HolderGate, DoesNotRestoreAMovedCard) {
  Host host;
  host.attach();
  auto& pf = host.kernel.pfs.begin()->second;
  pf.serial = "OTHER";
  pf.path = "pci0000:00/0000:00:09.0/0000:01:00.0";
  const int effects = host.kernel.effects;
  const Plan plan = host.detachPlan();
  ASSERT_EQ(plan.notes.size(), 2U);
  EXPECT_THAT(plan.notes[0], HasSubstr("was not restored"));
  host.execute(plan);
  EXPECT_EQ(host.kernel.effects, effects);
  EXPECT_TRUE(host.leases().empty());
}

}  // namespace
}  // namespace vfpass::apply
