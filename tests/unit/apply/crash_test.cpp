#include <gtest/gtest.h>
#include <sys/stat.h>

#include <chrono>
#include <fstream>
#include <future>
#include <memory>
#include <thread>

#include "test_host.hpp"
#include "vfpass/apply/recover.hpp"

namespace vfpass::apply {
namespace {

enum class Moment { beforeEffect, afterEffect, beforeDefine, afterDefine };

void arm(Host& host, Moment moment, int effect) {
  host.kernel.effects = 0;
  host.kernel.killBeforeEffect = moment == Moment::beforeEffect ? effect : -1;
  host.kernel.killAfterEffect = moment == Moment::afterEffect ? effect : -1;
  host.hypervisor.killBeforeDefine = moment == Moment::beforeDefine;
  host.hypervisor.killAfterDefine = moment == Moment::afterDefine;
}

void disarm(Host& host) {
  host.kernel.killBeforeEffect = host.kernel.killAfterEffect = -1;
  host.hypervisor.killBeforeDefine = host.hypervisor.killAfterDefine = false;
}

bool isKilled(Host& host, const Plan& plan) {
  try {
    host.execute(plan);
    return false;
  } catch (const fake::Killed&) {
    return true;
  }
}

// Kills an attach, or a detach after an attach, at one point; recovery by the next command must
// restore the old state or reach the new one, and a second recovery must find nothing.
class CrashTest : public testing::TestWithParam<std::tuple<unsigned, bool, bool>> {
 protected:
  static void prepareHost(Host& host, bool detach, bool vectors) {
    if (vectors) {
      host.shareVectors();
    }
    if (detach) {
      host.attach();
    }
  }
  static Plan planFor(Host& host, bool detach) {
    return detach ? host.detachPlan() : host.attachPlan();
  }
  static std::string reference(unsigned vfs, bool detach, bool vectors, bool run) {
    Host host(vfs);
    prepareHost(host, detach, vectors);
    if (run) {
      host.execute(planFor(host, detach));
    } else {
      planFor(host, detach);  // creates the database, like any command
    }
    return host.fingerprint();
  }
};

TEST_P(CrashTest, RecoveryEndsInTheOldOrTheNewState) {
  const auto [vfs, detach, vectors] = GetParam();
  const std::string before = reference(vfs, detach, vectors, false);
  const std::string after = reference(vfs, detach, vectors, true);
  ASSERT_NE(before, after);
  int killed = 0;
  for (const Moment moment :
       {Moment::beforeEffect, Moment::afterEffect, Moment::beforeDefine, Moment::afterDefine}) {
    for (int effect = 0; effect < 16; ++effect) {
      Host host(vfs);
      prepareHost(host, detach, vectors);
      const Plan plan = planFor(host, detach);
      arm(host, moment, effect);
      if (!isKilled(host, plan)) {
        break;
      }
      ++killed;
      disarm(host);
      const auto ended = host.recoverAll();
      EXPECT_EQ(ended.size(), 1U);
      const std::string now = host.fingerprint();
      EXPECT_TRUE(now == before || now == after)
          << "moment " << static_cast<int>(moment) << " effect " << effect << ":\n"
          << now << "\nis neither\n"
          << before << "\nnor\n"
          << after;
      EXPECT_TRUE(host.recoverAll().empty());
      EXPECT_EQ(host.fingerprint(), now);
    }
  }
  EXPECT_GT(killed, 6);
}

INSTANTIATE_TEST_SUITE_P(AttachAndDetach, CrashTest,
                         testing::Combine(testing::Values(0U, 4U), testing::Bool(),
                                          testing::Bool()));

TEST(Failure, AttachRollsBackAfterAnyFailedStep) {
  for (const unsigned vfs : {0U, 4U}) {
    // Configure and two bindings; a PF without VFs also needs their creation first.
    for (int effect = 0; effect < (vfs == 0 ? 4 : 3); ++effect) {
      Host host(vfs);
      const Plan plan = host.attachPlan();
      const std::string before = host.fingerprint();
      host.kernel.effects = 0;
      host.kernel.failAtEffect = effect;
      EXPECT_THROW(host.execute(plan), Error) << effect;
      EXPECT_EQ(host.fingerprint(), before) << effect;
      EXPECT_TRUE(host.recoverAll().empty());
    }
  }
}

// Such as a process that gets no more threads: not an Error.
TEST(Failure, BindingsWithoutAnAnswerAreTakenBack) {
  Host host;
  const Plan plan = host.attachPlan();
  const std::string before = host.fingerprint();
  host.kernel.losesAnswersOfBindings = true;
  EXPECT_THROW(host.execute(plan), Error);
  EXPECT_EQ(host.fingerprint(), before);
  EXPECT_TRUE(host.recoverAll().empty());
}

TEST(Failure, RefusedDefinitionRollsBackTheHostSteps) {
  Host host;
  const Plan plan = host.attachPlan();
  const std::string before = host.fingerprint();
  host.hypervisor.refuseDefine = true;
  EXPECT_THROW(host.execute(plan), Error);
  EXPECT_EQ(host.fingerprint(), before);
}

TEST(Failure, RecoverCompletesAFailedDetach) {
  Host host;
  host.attach();
  const Plan plan = host.detachPlan();
  host.kernel.effects = 0;
  host.kernel.failAtEffect = 1;
  EXPECT_THROW(host.execute(plan), Error);
  host.kernel.failAtEffect = -1;
  EXPECT_EQ(host.recoverAll().size(), 1U);
  Host clean;
  clean.attachPlan();
  EXPECT_EQ(host.fingerprint(), clean.fingerprint());
}

// An attach that was killed before it changed the XML.
class KilledAttachTest : public testing::Test {
 protected:
  void SetUp() override {
    const Plan plan = host.attachPlan();
    arm(host, Moment::beforeDefine, 0);
    ASSERT_TRUE(isKilled(host, plan));
    disarm(host);
  }

  Host host;
  state::Database database{host.folder / "state", state::Database::Open::createIfMissing,
                           std::chrono::milliseconds(1000)};
};

TEST_F(KilledAttachTest, IsLeftAloneWhileItsWriterLives) {
  const auto operations = database.openOperations();
  ASSERT_EQ(operations.size(), 1U);
  const auto writer = state::FileLock::acquire(
      state::writerLockFile(host.folder / "run", operations[0].id), std::chrono::milliseconds(100));
  const std::string now = host.fingerprint();
  EXPECT_TRUE(host.recoverAll().empty());
  EXPECT_EQ(host.fingerprint(), now);
}

// True if somebody waits for an flock on the file: /proc/locks marks waiters with an arrow.
bool isWaitedFor(const std::filesystem::path& file) {
  struct stat status {};
  if (::stat(file.c_str(), &status) != 0) {
    return false;
  }
  const std::string inode = ":" + std::to_string(status.st_ino) + " ";
  std::ifstream locks("/proc/locks");
  for (std::string line; std::getline(locks, line);) {
    if (line.find("->") != std::string::npos && line.find(inode) != std::string::npos) {
      return true;
    }
  }
  return false;
}

// The hook of a killed libvirtd keeps running while the next start waits for the PF.
TEST_F(KilledAttachTest, NeedsNoRecoveryIfItsWriterEndsMeanwhile) {
  const auto operation = database.openOperations().at(0).id;
  const auto pfLock = host.folder / "run" / "pf-0000:01:00.0.lock";
  auto held = std::make_unique<state::FileLock>(
      state::FileLock::acquire(pfLock, std::chrono::milliseconds(1000)));
  auto recovered = std::async(std::launch::async, [&] { return host.recoverAll(); });
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (!isWaitedFor(pfLock) && std::chrono::steady_clock::now() < end) {
    std::this_thread::yield();
  }
  ASSERT_TRUE(isWaitedFor(pfLock));
  database.finishOperation(operation);
  held.reset();
  EXPECT_TRUE(recovered.get().empty());
  EXPECT_FALSE(std::filesystem::exists(state::writerLockFile(host.folder / "run", operation)));
}

// A process that ends frees its locks one after another: a command that already has the domain's
// lock waits for the writer's, instead of going on beside the unfinished operation of its own
// domain.
TEST_F(KilledAttachTest, IsRecoveredByCommandOfItsDomainOnceItsWriterIsGone) {
  const auto file = state::writerLockFile(host.folder / "run", database.openOperations().at(0).id);
  auto dying = std::make_unique<state::FileLock>(
      state::FileLock::acquire(file, std::chrono::milliseconds(1000)));
  auto recovering = std::async(std::launch::async, [&] {
    Tools tools = host.tools(database);
    tools.lockTimeout = std::chrono::seconds(10);
    return recover(tools, std::nullopt, host.uuid);
  });
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (!isWaitedFor(file) && std::chrono::steady_clock::now() < end) {
    std::this_thread::yield();
  }
  EXPECT_TRUE(isWaitedFor(file));
  dying.reset();
  const auto recovered = recovering.get();
  EXPECT_EQ(recovered.done.size(), 1U);
  EXPECT_TRUE(recovered.left.empty());
}

TEST(Recover, ChangesNoDeviceAfterAReboot) {
  Host host;
  const Plan plan = host.attachPlan();
  arm(host, Moment::beforeDefine, 0);
  ASSERT_TRUE(isKilled(host, plan));
  disarm(host);
  host.kernel.reboot();
  host.kernel.effects = 0;
  EXPECT_EQ(host.recoverAll().size(), 1U);
  EXPECT_EQ(host.kernel.effects, 0);
  EXPECT_FALSE(domain::parseDomain(host.xml()).managed);
}

TEST(Recover, CompletesWithoutARemovedCard) {
  Host host(0);
  const Plan plan = host.attachPlan();
  arm(host, Moment::afterEffect, 2);
  ASSERT_TRUE(isKilled(host, plan));
  disarm(host);
  ASSERT_FALSE(host.kernel.pfs.begin()->second.vfs.empty());
  host.kernel.pfs.clear();
  EXPECT_EQ(host.recoverAll().size(), 1U);
  EXPECT_TRUE(host.recoverAll().empty());
}

/// A release that died before its first step, of devices that a detach gives back meanwhile.
class InterruptedReleaseTest : public testing::Test {
 protected:
  struct Released {
    Released() {
      host.attach();
      Plan release{PlanKind::release, host.uuid, "train0", {}, {}};
      for (const Lease& lease : host.leases()) {
        VfSettings neutral;
        neutral.mac = MacAddress{};
        release.steps.push_back({ResetFunction{lease.device}, {}, "stopped"});
        release.steps.push_back(
            {ConfigureVfs{lease.pf, {{vfOf(lease).index, neutral, {}}}}, {}, "stopped"});
        release.steps.push_back({RecordLease{lease}, {}, "stopped"});
      }
      state::Database(host.folder / "state", state::Database::Open::createIfMissing,
                      std::chrono::milliseconds(1000))
          .beginOperation(release, host.kernel.bootId());
    }
    Host host;
  };
};

TEST_F(InterruptedReleaseTest, BringsNoEndedLeaseBack) {
  Released released;
  released.host.execute(released.host.detachPlan());
  const std::string now = released.host.fingerprint();
  released.host.kernel.effects = 0;
  EXPECT_EQ(released.host.recoverAll().size(), 1U);
  EXPECT_EQ(released.host.fingerprint(), now);
  EXPECT_EQ(released.host.kernel.effects, 0);
}

// A start died once it had recorded that it begins, and a detach has ended the leases meanwhile.
TEST(InterruptedPrepareTest, BringsNoEndedLeaseBack) {
  Host host;
  host.attach();
  Plan prepare{PlanKind::prepare, host.uuid, "train0", {}, {}};
  for (const Lease& lease : host.leases()) {
    Lease starting = lease;
    starting.state = LeaseState::starting;
    prepare.steps.push_back({RecordLease{starting}, {RecordLease{lease}}, "starting"});
    prepare.steps.push_back(
        {ResetFunction{lease.device}, {ResetFunction{lease.device}}, "starting"});
  }
  {
    state::Database database(host.folder / "state", state::Database::Open::createIfMissing,
                             std::chrono::milliseconds(1000));
    const auto operation = database.beginOperation(prepare, host.kernel.bootId());
    database.markSteps(operation, 0, prepare.steps.size() - 1, state::StepStatus::done);
    database.markSteps(operation, prepare.steps.size() - 1, 1, state::StepStatus::started);
  }
  host.execute(host.detachPlan());
  const std::string now = host.fingerprint();
  host.kernel.effects = 0;
  EXPECT_EQ(host.recoverAll().size(), 1U);
  EXPECT_EQ(host.fingerprint(), now);
  EXPECT_EQ(host.kernel.effects, 0);
}

// The detach died after it had restored the devices, and before it ended the leases.
TEST_F(InterruptedReleaseTest, LeavesDeviceThatDetachGivesBack) {
  Released released;
  Host& host = released.host;
  const Plan detach = host.detachPlan();
  const auto leases = host.leases();
  host.execute(detach);
  const std::string detached = host.fingerprint();
  state::Database database(host.folder / "state", state::Database::Open::createIfMissing,
                           std::chrono::milliseconds(1000));
  for (const Lease& lease : leases) {
    database.recordLease(lease);
  }
  const auto operation = database.beginOperation(detach, host.kernel.bootId());
  for (std::size_t at = 0; at < detach.steps.size(); ++at) {
    if (!std::holds_alternative<DropLease>(detach.steps[at].action)) {
      database.markSteps(operation, at, 1, state::StepStatus::done);
    }
  }
  EXPECT_EQ(host.recoverAll().size(), 2U);
  EXPECT_EQ(host.fingerprint(), detached);
}

TEST(Recover, DoesNotRollBackAnAttachWithAStartedVf) {
  Host host;
  const Plan plan = host.attachPlan();
  arm(host, Moment::afterDefine, 0);
  ASSERT_TRUE(isKilled(host, plan));
  disarm(host);
  host.execute(host.preparePlan());
  const std::string now = host.fingerprint();
  EXPECT_EQ(host.recoverAll().size(), 1U);
  EXPECT_EQ(host.fingerprint(), now);
}

// Whether libvirt has the new XML is unknown, so neither direction is right.
TEST(Recover, UnreadableDomainIsNeitherCompletedNorRolledBack) {
  Host host;
  arm(host, Moment::afterDefine, 0);
  ASSERT_TRUE(isKilled(host, host.attachPlan()));
  disarm(host);
  DomainXml& xml = host.hypervisor.domains[0].persistentXml;
  const DomainXml defined = xml;
  const auto leases = host.leases();
  xml = DomainXml(Error("too large for libvirt to send"));
  EXPECT_THROW(host.recoverAll(), Error);
  EXPECT_EQ(host.leases(), leases);
  xml = defined;
  const auto lines = host.recoverAll();
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_NE(lines[0].find("completed"), std::string::npos) << lines[0];
}

}  // namespace
}  // namespace vfpass::apply
