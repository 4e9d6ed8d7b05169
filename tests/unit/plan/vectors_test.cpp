#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fake/fake_kernel.hpp"
#include "vfpass/error.hpp"
#include "vfpass/plan/plan_attach.hpp"
#include "vfpass/plan/plan_detach.hpp"
#include "vfpass/plan/plan_hook.hpp"

namespace vfpass::plan {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const PciAddress firstPf = *parsePciAddress("0000:01:00.0");

class VectorsTest : public testing::Test {
 protected:
  VectorsTest() {
    kernel.addPf("0000:01:00.0", "ens1f0np0", 8, 4);
    pf().totalVfVectors = 40;
    for (auto& vf : pf().vfs) {
      vf.settings.msixVectors = 8;
    }
    input.domain = *parseUuid("0f5e9a3c-1111-4222-8333-944455566677");
    input.domainName = "train0";
    input.mapping.vm = "train0";
    input.mapping.vfs = {entry("rail0", 4)};
    for (std::uint8_t bus = 1; bus < 4; ++bus) {
      input.placements.push_back(
          {{0, bus, 0, 0}, RootPort{bus, {0, 0, static_cast<std::uint8_t>(bus + 1), 0}}, {}});
    }
    input.generation = 7;
    input.vcpus = 4;
  }

  // nullopt: auto
  static MappedVf entry(const std::string& name, std::optional<std::uint16_t> vectors) {
    MappedVf vf;
    vf.name = name;
    vf.pf.netdev = "ens1f0np0";
    vf.place = {"train0.yaml", 4, 5};
    vf.settings.msixVectors = vectors;
    if (!vectors) {
      vf.automatic = {Attribute::msixVectors};
    }
    vf.required = {Attribute::msixVectors};
    return vf;
  }

  PhysicalFunction& pf() { return kernel.pfs.at(firstPf); }
  AttachDecision decide() {
    input.inventory = kernel.inventory();
    return planAttach(input);
  }
  std::vector<std::optional<std::uint16_t>> chosen() {
    std::vector<std::optional<std::uint16_t>> vectors;
    for (const Lease& lease : decide().leases) {
      vectors.push_back(settingsOf(lease).msixVectors);
    }
    return vectors;
  }
  Objection objection() {
    const auto decision = decide();
    EXPECT_EQ(decision.objections.size(), 1U);
    EXPECT_TRUE(decision.plan.steps.empty());
    return decision.objections.empty() ? Objection{} : decision.objections[0];
  }
  std::vector<std::string> steps() {
    std::vector<std::string> described;
    for (const Step& step : decide().plan.steps) {
      described.push_back(describe(step.action));
    }
    return described;
  }

  fake::FakeKernel kernel;
  AttachInput input;
};

TEST_F(VectorsTest, AreSetWhileNoDriverIsBound) {
  const auto decision = decide();
  ASSERT_THAT(decision.objections, IsEmpty());
  const auto& steps = decision.plan.steps;
  ASSERT_EQ(steps.size(), 5U);
  const PciAddress vf = pf().vfs[0].address;
  EXPECT_EQ(std::get<BindDriver>(steps[1].action), (BindDriver{vf, "", ""}));
  EXPECT_EQ(std::get<BindDriver>(steps[1].undo.at(0)), (BindDriver{vf, "mlx5_core", ""}));
  EXPECT_TRUE(steps[1].disrupts);
  EXPECT_EQ(std::get<ConfigureVfs>(steps[2].action).vfs.at(0).settings.msixVectors, 4);
  EXPECT_EQ(std::get<ConfigureVfs>(steps[2].undo.at(0)).vfs.at(0).settings.msixVectors, 8);
  EXPECT_EQ(std::get<BindDriver>(steps[3].action), (BindDriver{vf, "vfio-pci", "vfio-pci"}));
  EXPECT_THAT(steps[3].undo, ElementsAre(Action(BindDriver{vf, "", ""})))
      << "its driver comes back after the values";
  EXPECT_THAT(describe(steps[2].action), HasSubstr("msix-vectors 4"));
}

TEST_F(VectorsTest, NeedNoUnbindingThatChangesNothing) {
  pf().vfs[0].settings.msixVectors = 4;
  EXPECT_EQ(steps().size(), 4U);
  input.mapping.vfs = {entry("rail0", std::nullopt)};
  input.mapping.vfs[0].automatic.clear();
  pf().vfs[0].settings.msixVectors = 8;
  EXPECT_EQ(steps().size(), 4U) << "left alone";
}

TEST_F(VectorsTest, ManagedVfGetsItsDriverBack) {
  input.mapping.vfs[0].managed = true;
  const auto decision = decide();
  ASSERT_EQ(decision.plan.steps.size(), 5U);
  EXPECT_EQ(std::get<BindDriver>(decision.plan.steps[3].action),
            (BindDriver{pf().vfs[0].address, "mlx5_core", ""}));
}

TEST_F(VectorsTest, OfNewVfsAreSetBeforeADriverIsBound) {
  pf().vfs.clear();
  input.policy.pfs.emplace_back();
  input.policy.pfs.back().pf.netdev = "ens1f0np0";
  input.policy.pfs.back().vfCount = 4;
  input.policy.pfs.back().probeVfs = true;
  const auto decision = decide();
  ASSERT_EQ(decision.plan.steps.size(), 6U);
  EXPECT_TRUE(std::get<CreateVfs>(decision.plan.steps[1].action).probe);
  EXPECT_EQ(std::get<BindDriver>(decision.plan.steps[2].action).driver, "");
  EXPECT_THAT(decision.plan.steps[2].undo, IsEmpty());
}

TEST_F(VectorsTest, AutomaticIsOnePerVcpuAndOneForEvents) {
  input.mapping.vfs = {entry("rail0", std::nullopt)};
  EXPECT_THAT(chosen(), ElementsAre(5));
  EXPECT_THAT(decide().plan.notes, testing::Not(testing::Contains(HasSubstr("vector"))));
}

// 40 in total; the two other VFs have 16.
TEST_F(VectorsTest, AutomaticSharesWhatIsLeft) {
  input.vcpus = 64;
  input.mapping.vfs = {entry("rail0", std::nullopt), entry("rail1", std::nullopt)};
  EXPECT_THAT(chosen(), ElementsAre(12, 12));
  EXPECT_THAT(decide().plan.notes, testing::Contains(HasSubstr(
                                       "rail0 gets 12 interrupt vectors instead of 65 (64 vCPUs, "
                                       "and one for events): PF 0000:01:00.0 has only 24 of its "
                                       "40 left")));
  input.mapping.vfs[1] = entry("rail1", 20);
  EXPECT_THAT(chosen(), ElementsAre(4, 20)) << "a number comes before auto";
}

TEST_F(VectorsTest, AutomaticRefusesLessThanTwo) {
  input.mapping.vfs = {entry("rail0", std::nullopt)};
  pf().vfs[1].settings.msixVectors = 23;
  EXPECT_THAT(objection().message, HasSubstr("has only 1 of its 40 interrupt vectors left"));
}

TEST_F(VectorsTest, RefusesMoreThanThePfHas) {
  input.mapping.vfs = {entry("rail0", 41)};
  EXPECT_THAT(objection().message,
              HasSubstr("sets msix-vectors: 41, but PF 0000:01:00.0 has 40 interrupt vectors"));
  EXPECT_EQ(objection().code, ExitCode::badInput);
  input.mapping.vfs = {entry("rail0", 17)};
  EXPECT_THAT(objection().message, HasSubstr("has only 16 of its 40 interrupt vectors left"));
  EXPECT_THAT(objection().remedy, HasSubstr("use at most 16"));
  input.mapping.vfs = {entry("rail0", 16)};
  EXPECT_THAT(decide().objections, IsEmpty());
}

TEST_F(VectorsTest, LeavesUnknownLimitsToTheDriver) {
  pf().vfs[1].settings.msixVectors.reset();
  input.mapping.vfs = {entry("rail0", 40)};
  EXPECT_THAT(decide().objections, IsEmpty());
  pf().totalVfVectors.reset();
  input.mapping.vfs = {entry("rail0", 1000)};
  EXPECT_THAT(decide().objections, IsEmpty());
}

TEST_F(VectorsTest, RefusesAPfThatSharesNone) {
  pf().totalVfVectors = 0;
  EXPECT_THAT(
      objection().message,
      HasSubstr("train0.yaml:4:5: rail0 sets msix-vectors, but the kernel, driver or firmware "
                "of PF 0000:01:00.0 does not let the host distribute"));
  EXPECT_THAT(objection().remedy, HasSubstr("sriov_vf_total_msix"));
  input.mapping.vfs[0].required = {};
  const auto decision = decide();
  EXPECT_THAT(decision.objections, IsEmpty());
  EXPECT_TRUE(vfOf(decision.leases.at(0)).refused.contains(Attribute::msixVectors));
  EXPECT_EQ(decision.plan.steps.size(), 4U);
}

TEST_F(VectorsTest, ExistOnInfiniband) {
  pf().linkLayer = LinkLayer::infiniband;
  for (auto& vf : pf().vfs) {
    vf.settings = {};
    vf.settings.msixVectors = 8;
  }
  EXPECT_THAT(chosen(), ElementsAre(4));
}

TEST_F(VectorsTest, DoNotChangeUnderARunningGuest) {
  input.mapping.vfs = {entry("rail0", std::nullopt)};
  auto first = decide();
  input.leases = first.leases;
  input.active = true;
  input.scope = {true, true};
  input.plugged = {"rail0"};
  pf().vfs[0].settings = settingsOf(first.leases[0]);
  pf().vfs[0].driver = "vfio-pci";
  input.vcpus = 9;
  EXPECT_THAT(chosen(), ElementsAre(5));
  input.mapping.vfs = {entry("rail0", 6)};
  EXPECT_THAT(objection().message, HasSubstr("in use by the running guest"));
  input.mapping.vfs = {entry("rail0", std::nullopt)};
  input.mapping.vfs[0].automatic.clear();
  EXPECT_THAT(objection().message, HasSubstr("in use by the running guest"));
}

// QEMU has the VF open: unbinding vfio-pci would wait for it.
TEST_F(VectorsTest, NeedNoUnbindingUnderARunningGuest) {
  auto first = decide();
  ASSERT_EQ(first.leases.size(), 1U);
  input.leases = input.liveLeases = first.leases;
  input.leases[0].state = LeaseState::running;
  input.active = true;
  input.scope = {true, true};
  input.xmlCurrent = true;
  input.plugged = {"rail0"};
  pf().vfs[0].settings = settingsOf(first.leases[0]);
  pf().vfs[0].driver = "vfio-pci";
  for (const auto seen : {std::optional<std::uint16_t>(9), std::optional<std::uint16_t>()}) {
    pf().vfs[0].settings.msixVectors = seen;
    input.mapping.vfs[0].settings.rate.reset();
    EXPECT_THAT(steps(), IsEmpty()) << "no drift that attach could repair";
    input.mapping.vfs[0].settings.rate = Rate{0, 1000};
    const auto decision = decide();
    EXPECT_THAT(decision.objections, IsEmpty());
    unsigned configurations = 0;
    for (const Step& step : decision.plan.steps) {
      EXPECT_FALSE(std::holds_alternative<BindDriver>(step.action)) << describe(step.action);
      if (const auto* configure = std::get_if<ConfigureVfs>(&step.action)) {
        ++configurations;
        EXPECT_EQ(configure->vfs.at(0).settings.rate, (Rate{0, 1000}));
        EXPECT_EQ(configure->vfs.at(0).settings.msixVectors, std::nullopt);
      }
    }
    EXPECT_EQ(configurations, 1U);
  }
}

TEST_F(VectorsTest, NeedNoUnbindingIfTheyCannotBeRead) {
  pf().vfs[0].settings.msixVectors.reset();
  EXPECT_EQ(steps().size(), 4U);
}

// 36 in total, of which the two other VFs have 16.
TEST_F(VectorsTest, AutomaticDoesNotShareWhatARunningGuestKeeps) {
  pf().totalVfVectors = 44;
  input.vcpus = 15;
  input.mapping.vfs = {entry("b", std::nullopt)};
  input.leases = decide().leases;
  ASSERT_EQ(settingsOf(input.leases.at(0)).msixVectors, 16);
  pf().totalVfVectors = 36;
  pf().vfs[0].settings.msixVectors = 16;
  pf().vfs[0].driver = "vfio-pci";
  input.active = true;
  input.scope = {true, true};
  input.plugged = {"b"};
  input.mapping.vfs = {entry("a", std::nullopt), entry("b", std::nullopt)};
  EXPECT_THAT(chosen(), ElementsAre(4, 16));
}

TEST_F(VectorsTest, RenamedEntriesWithAutoKeepTheirVfs) {
  const auto limited = [](const std::string& name, unsigned rate) {
    MappedVf vf = entry(name, std::nullopt);
    vf.settings.rate = Rate{0, rate};
    return vf;
  };
  input.mapping.vfs = {limited("rail0", 100), limited("rail1", 200)};
  input.leases = decide().leases;
  input.mapping.vfs = {limited("second", 200), limited("first", 100)};
  const auto leases = decide().leases;
  ASSERT_EQ(leases.size(), 2U);
  EXPECT_EQ(vfOf(leases[0]).index, 1U);
  EXPECT_EQ(vfOf(leases[1]).index, 0U);
}

TEST_F(VectorsTest, NeedNoNetlink) {
  pf().reportsNoVfs = true;
  input.mapping.vfs[0].settings.trust = true;
  const auto decision = decide();
  ASSERT_EQ(decision.leases.size(), 1U);
  EXPECT_TRUE(vfOf(decision.leases[0]).refused.contains(Attribute::trust));
  EXPECT_FALSE(vfOf(decision.leases[0]).refused.contains(Attribute::msixVectors));
}

TEST_F(VectorsTest, OriginalIsRecordedOnlyIfTheLeaseSetsThem) {
  EXPECT_EQ(decide().leases.at(0).original.settings.msixVectors, 8);
  input.mapping.vfs = {entry("rail0", std::nullopt)};
  input.mapping.vfs[0].automatic.clear();
  const auto first = decide();
  EXPECT_EQ(first.leases.at(0).original.settings.msixVectors, std::nullopt);
  input.leases = first.leases;  // the mapping sets them later
  input.mapping.vfs = {entry("rail0", 4)};
  EXPECT_EQ(decide().leases.at(0).original.settings.msixVectors, 8);
}

// Two VFs share 16 vectors; the other domain has the first one.
class SharedVectorsTest : public VectorsTest {
 protected:
  SharedVectorsTest() {
    pf().vfs.resize(2);
    pf().totalVfVectors = 16;
    other.domain = *parseUuid("ffffffff-1111-4222-8333-944455566677");
    other.domainName = "train1";
    other.entry = "rail0";
    other.pf = firstPf;
    other.pfPath = pf().path;
    other.device = pf().vfs[0].address;
    vfOf(other).count = 2;
    vfOf(other).settings.msixVectors = 2;
    vfOf(other).required = {Attribute::msixVectors};
    input.mapping.vfs = {entry("rail0", 14)};
  }
  // What the start of the test's domain does with the VFs of the PF.
  std::vector<RefusedAttribute> start(const Lease& lease) {
    const auto decision = planPrepare(lease.domain, lease.domainName, {lease}, {other, lease},
                                      kernel.inventory(), "boot");
    EXPECT_THAT(decision.objections, IsEmpty());
    std::vector<RefusedAttribute> refused;
    for (const Step& step : decision.plan.steps) {
      if (const auto* create = std::get_if<CreateVfs>(&step.action)) {
        kernel.createVfs(*create);
        shareEvenly();
      } else if (const auto* configure = std::get_if<ConfigureVfs>(&step.action)) {
        refused = kernel.configureVfs(*configure);
      }
    }
    return refused;
  }
  // mlx5_get_default_msix_vec_count
  void shareEvenly() {
    for (auto& vf : pf().vfs) {
      vf.settings.msixVectors = 8;
    }
  }
  Lease other;
};

TEST_F(SharedVectorsTest, StartOfTheSecondVmAfterARebootFits) {
  input.leases = {other};
  pf().vfs[0].settings.msixVectors = 2;
  const auto leases = decide().leases;
  ASSERT_EQ(leases.size(), 1U);
  kernel.reboot();
  EXPECT_THAT(start(leases[0]), IsEmpty());
  EXPECT_EQ(pf().vfs.at(0).settings.msixVectors, 2) << "what its own start needs";
  EXPECT_EQ(pf().vfs.at(1).settings.msixVectors, 14);
  // host apply has created the VFs.
  shareEvenly();
  EXPECT_THAT(start(leases[0]), IsEmpty());
  EXPECT_EQ(pf().vfs.at(1).settings.msixVectors, 14);
}

TEST_F(SharedVectorsTest, LeaveTheVfOfARunningGuestAlone) {
  input.leases = {other};
  pf().vfs[0].settings.msixVectors = 2;
  const auto leases = decide().leases;
  ASSERT_EQ(leases.size(), 1U);
  pf().vfs[0].settings.msixVectors = 3;
  pf().vfs[0].driver = "vfio-pci";
  other.state = LeaseState::running;
  pf().vfs[1].driver.clear();
  pf().vfs[1].settings.msixVectors = 13;
  EXPECT_THROW(start(leases[0]), Error);
  EXPECT_EQ(pf().vfs[0].settings.msixVectors, 3);
}

TEST_F(SharedVectorsTest, LeaveWhatALeaseHas) {
  vfOf(other).settings.msixVectors = 14;
  input.leases = {other};
  input.mapping.vfs = {entry("rail0", 3)};
  EXPECT_THAT(objection().message, HasSubstr("has only 2 of its 16 interrupt vectors left"));
  kernel.reboot();
  EXPECT_THAT(objection().message, HasSubstr("has only 2 of its 16 interrupt vectors left"));
  input.mapping.vfs = {entry("rail0", 2)};
  const auto decision = decide();
  EXPECT_THAT(decision.objections, IsEmpty());
  std::vector<std::uint16_t> configured;
  for (const Step& step : decision.plan.steps) {
    if (const auto* configure = std::get_if<ConfigureVfs>(&step.action)) {
      for (const VfChange& change : configure->vfs) {
        configured.push_back(change.settings.msixVectors.value_or(0));
      }
    }
  }
  EXPECT_THAT(configured, ElementsAre(2, 14)) << "and the new VFs get them";
}

// host.yaml requests fewer VFs by now.
TEST_F(SharedVectorsTest, OfALeaseWithoutAVfAreNotSet) {
  vfOf(other).index = 5;
  input.leases = {other};
  input.policy.pfs.emplace_back();
  input.policy.pfs.back().pf.netdev = "ens1f0np0";
  input.policy.pfs.back().vfCount = 2;
  kernel.reboot();
  input.mapping.vfs = {entry("rail0", 4)};
  const auto decision = decide();
  ASSERT_THAT(decision.objections, IsEmpty());
  for (const Step& step : decision.plan.steps) {
    if (const auto* configure = std::get_if<ConfigureVfs>(&step.action)) {
      EXPECT_EQ(configure->vfs.size(), 1U);
    }
  }
}

// What the end of the other lease restores is not there to be given away.
TEST_F(SharedVectorsTest, DetachCanRestoreThem) {
  other.original.settings.msixVectors = 8;
  other.original.driver = "";
  pf().vfs[0].settings.msixVectors = 2;
  pf().vfs[0].driver.clear();
  input.leases = {other};
  EXPECT_THAT(objection().message, HasSubstr("has only 8 of its 16 interrupt vectors left"));
  input.mapping.vfs = {entry("rail0", 8)};
  EXPECT_THAT(decide().objections, IsEmpty());
  for (const Step& step : planRestore({other}, {other}, kernel.inventory(), {}).steps) {
    if (const auto* configure = std::get_if<ConfigureVfs>(&step.action)) {
      EXPECT_THAT(kernel.configureVfs(*configure), IsEmpty());
    }
  }
  EXPECT_EQ(pf().vfs[0].settings.msixVectors, 8);
}

// So does an entry that the mapping no longer has.
TEST_F(SharedVectorsTest, RemovedEntryCanRestoreThem) {
  other.original.settings.msixVectors = 8;
  other.domain = input.domain;
  other.domainName = input.domainName;
  other.entry = "removed";
  pf().vfs[0].settings.msixVectors = 2;
  input.leases = {other};
  input.mapping.vfs[0].index = 1;
  EXPECT_THAT(objection().message, HasSubstr("has only 8 of its 16 interrupt vectors left"));
}

}  // namespace
}  // namespace vfpass::plan
