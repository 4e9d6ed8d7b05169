#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "fake/seal_key.hpp"
#include "test_host.hpp"
#include "vfpass/apply/adopt_leases.hpp"
#include "vfpass/apply/recover.hpp"
#include "vfpass/plan/plan_hook.hpp"

namespace vfpass::apply {
namespace {

// The host of the other tests, plus a GPU and its audio function in one IOMMU group.
class FunctionHost : public Host {
 public:
  FunctionHost() {
    add("0000:3a:00.0", "nvidia", "gpu0");
    add("0000:3a:00.1", "snd_hda_intel", "audio0");
    kernel.functions.begin()->second.groupPeers = {
        {kernel.functions.rbegin()->first, 0x040300, "snd_hda_intel"}};
    attachPlan();  // creates the database, like any command
  }
  [[nodiscard]] std::vector<Lease> leases() const {
    return state::Database(folder / "state", state::Database::Open::readOnly,
                           std::chrono::milliseconds(1000))
        .leases();
  }
  Plan releasePlan() {
    return plan::planRelease(uuid, "train0", leases(), kernel.inventory(), kernel.bootId());
  }

 private:
  void add(const std::string& address, const std::string& driver, const std::string& name) {
    kernel.addFunction(address, driver).driverOverride = driver;
    mapping.functions.push_back({name, *parsePciAddress(address), {"train0.yaml", 9, 5}});
  }
};

TEST(Function, DetachRestoresTheStateBeforeAttach) {
  FunctionHost host;
  const std::string before = host.fingerprint();
  const std::string xml = host.xml();
  host.attach();
  for (const auto& [address, function] : host.kernel.functions) {
    EXPECT_EQ(function.driver, "vfio-pci");
    EXPECT_EQ(function.driverOverride, "vfio-pci");
  }
  EXPECT_EQ(domain::parseDomain(host.xml()).claims.size(), 4U);
  EXPECT_TRUE(domain::carriesLeases(host.xml(), host.leases(), fake::sealKey()));
  EXPECT_TRUE(host.attachPlan().steps.empty());
  host.execute(host.detachPlan());
  EXPECT_EQ(host.fingerprint(), before);
  EXPECT_EQ(host.xml(), xml);
}

TEST(Function, PrepareReleaseAndRebootKeepTheOriginalState) {
  FunctionHost host;
  const std::string before = host.fingerprint();
  host.attach();
  host.execute(host.preparePlan());
  EXPECT_EQ(host.leases().at(0).state, LeaseState::starting);
  host.execute(host.releasePlan());
  EXPECT_EQ(host.leases().at(0).state, LeaseState::reserved);
  host.kernel.functions.begin()->second.driver = "nvidia";  // as after a reboot
  host.execute(host.preparePlan());
  EXPECT_EQ(host.kernel.functions.begin()->second.driver, "vfio-pci");
  host.execute(host.releasePlan());
  host.execute(host.detachPlan());
  EXPECT_EQ(host.fingerprint(), before);
}

TEST(Function, LeasesOfALostDatabaseAreRebuiltFromTheXml) {
  FunctionHost host;
  host.attach();
  const auto known = host.leases();
  std::filesystem::remove_all(host.folder / "state");
  state::Database database(host.folder / "state", state::Database::Open::createIfMissing,
                           std::chrono::milliseconds(1000));
  const auto adoption =
      adoptLeases(database, host.kernel, fake::sealKey(), {domain::parseDomain(host.xml())}, {});
  EXPECT_TRUE(adoption.refused.empty());
  EXPECT_EQ(database.leases(), known);
}

// Kills the plan before or after its `effect`-th change of the kernel; false if it has fewer.
bool killed(Host& host, const Plan& plan, bool after, int effect) {
  host.kernel.effects = 0;
  (after ? host.kernel.killAfterEffect : host.kernel.killBeforeEffect) = effect;
  bool dead = false;
  try {
    host.execute(plan);
  } catch (const fake::Killed&) {
    dead = true;
  }
  host.kernel.killBeforeEffect = host.kernel.killAfterEffect = -1;
  return dead;
}

// At any point of attach (0) or detach (1), recovery returns the functions to the host or to the
// guest, and a second recovery finds nothing.
TEST(Function, RecoveryEndsInTheOldOrTheNewState) {
  FunctionHost reference;
  const std::string apart = reference.fingerprint();
  reference.attach();
  const std::string together = reference.fingerprint();
  int kills = 0;
  for (const bool detach : {false, true}) {
    for (int at = 0; at < 20; ++at) {
      FunctionHost host;
      if (detach) {
        host.attach();
      }
      const Plan plan = detach ? host.detachPlan() : host.attachPlan();
      if (!killed(host, plan, at % 2 == 1, at / 2)) {
        break;
      }
      ++kills;
      EXPECT_EQ(host.recoverAll().size(), 1U);
      const std::string now = host.fingerprint();
      EXPECT_TRUE(now == apart || now == together) << "detach " << detach << " at " << at << now;
      EXPECT_TRUE(host.recoverAll().empty());
    }
  }
  EXPECT_EQ(kills, 20)
      << "configure and four bindings, before and after each, for attach and detach";
}

// The GPU of the host above is a partition of its own.
class PartitionHost : public FunctionHost {
 public:
  PartitionHost() {
    shareNvlink(*this, mapping.functions.at(0).pci);
    attach();
  }
  [[nodiscard]] bool isActive() const { return kernel.partitions.at(1).active; }
  [[nodiscard]] bool isIdle() const {
    return std::ranges::all_of(
        leases(), [](const Lease& lease) { return lease.state == LeaseState::reserved; });
  }
};

TEST(Function, PartitionIsActiveWhileItsGuestRuns) {
  PartitionHost host;
  EXPECT_TRUE(host.attachPlan().steps.empty()) << "the module is recorded";
  EXPECT_FALSE(host.isActive());
  host.execute(host.preparePlan());
  EXPECT_TRUE(host.isActive());
  host.execute(host.releasePlan());
  EXPECT_FALSE(host.isActive());
  EXPECT_FALSE(host.kernel.partitions.at(0).active);
}

TEST(Function, PartitionOfAnotherGuestIsLeftAsItIs) {
  PartitionHost host;
  host.kernel.partitions.at(0).active = true;
  EXPECT_THROW(host.execute(host.preparePlan()), Error);
  EXPECT_TRUE(host.kernel.partitions.at(0).active);
  EXPECT_FALSE(host.isActive());
  EXPECT_TRUE(host.isIdle());
}

// By hand: neither a stop nor the rollback of a start ends what no start has begun.
TEST(Function, PartitionThatWasActiveBeforeTheStartStaysActive) {
  PartitionHost host;
  host.kernel.partitions.at(1).active = true;
  host.execute(host.preparePlan());
  EXPECT_THAT(host.leases(), testing::Each(testing::Field(&Lease::activatedPartition, false)));
  host.execute(host.releasePlan());
  EXPECT_TRUE(host.isActive());
}

TEST(Function, LeaseKnowsThatItsRunHasActivatedThePartition) {
  PartitionHost host;
  const auto known = [&] {
    return std::ranges::count_if(host.leases(), &Lease::activatedPartition);
  };
  EXPECT_EQ(known(), 0);
  host.execute(host.preparePlan());
  EXPECT_EQ(known(), 1) << "the GPU's, not the VF's";
  host.execute(host.preparePlan());
  EXPECT_EQ(known(), 1) << "its guest died without a stop, and starts again";
  host.execute(host.releasePlan());
  EXPECT_EQ(known(), 0);
  EXPECT_FALSE(host.isActive());
}

// Killed before or after any change of a start or a stop.
TEST(Function, RecoveryDeactivatesThePartition) {
  for (const bool stop : {false, true}) {
    for (int at = 0;; ++at) {
      PartitionHost host;
      if (stop) {
        host.execute(host.preparePlan());
      }
      const Plan plan = stop ? host.releasePlan() : host.preparePlan();
      if (!killed(host, plan, at % 2 == 1, at / 2)) {
        EXPECT_GT(at, 1) << "stop " << stop;
        break;
      }
      host.recoverAll();
      EXPECT_FALSE(host.isActive()) << "stop " << stop << " at " << at;
      EXPECT_TRUE(host.isIdle()) << "stop " << stop << " at " << at;
      host.execute(host.preparePlan());
      EXPECT_TRUE(host.isActive());
    }
  }
}

TEST(Function, BindTimeoutRollsBackOtherDevicesAtOnceAndItselfLater) {
  FunctionHost host;
  const std::string before = host.fingerprint();
  host.kernel.hangingUnbinds = {*parsePciAddress("0000:3a:00.1")};
  EXPECT_THROW(host.execute(host.attachPlan()), TimeoutError);
  EXPECT_EQ(host.kernel.functions[*parsePciAddress("0000:3a:00.0")].driver, "nvidia");
  EXPECT_EQ(host.kernel.pfs.begin()->second.vfs[0].driver, "mlx5_core");
  host.kernel.finishPendingWrites();
  EXPECT_EQ(host.recoverAll().size(), 1U);
  EXPECT_EQ(host.fingerprint(), before);
}

// The detach has restored the other functions, so it must not roll the XML back.
TEST(Function, DetachGoesForwardIfOnlyTheFirstOfSeveralBindingsFails) {
  FunctionHost host;
  const std::string before = host.fingerprint();
  host.execute(host.attachPlan());
  const Plan plan = host.detachPlan();
  const auto isBinding = [](const Step& step) {
    return std::holds_alternative<BindDriver>(step.action);
  };
  const auto first = std::ranges::find_if(plan.steps, isBinding);
  ASSERT_GE(std::ranges::count_if(plan.steps, isBinding), 2);
  host.kernel.effects = 0;
  host.kernel.failAtEffect =
      static_cast<int>(std::count_if(plan.steps.begin(), first, [](const Step& step) {
        return std::holds_alternative<ConfigureVfs>(step.action);
      }));
  try {
    host.execute(plan);
    ADD_FAILURE() << "the binding did not fail";
  } catch (const Error& error) {
    EXPECT_THAT(error.remedy(), testing::HasSubstr("vfpass recover"));
  }
  host.kernel.failAtEffect = -1;
  EXPECT_EQ(host.recoverAll().size(), 1U);
  EXPECT_EQ(host.fingerprint(), before);
}

TEST(Function, RecoveryIgnoresARemovedFunction) {
  FunctionHost host;
  ASSERT_TRUE(killed(host, host.attachPlan(), true, 4));
  host.kernel.functions.clear();
  EXPECT_EQ(host.recoverAll().size(), 1U);
  EXPECT_TRUE(host.leases().empty());
}

}  // namespace
}  // namespace vfpass::apply
