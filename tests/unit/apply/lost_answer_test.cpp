#include <SQLiteCpp/Database.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test_host.hpp"
#include "vfpass/apply/recover.hpp"
#include "vfpass/plan/plan_hook.hpp"

namespace vfpass::apply {
namespace {

using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::IsEmpty;

/// A step fails although it has taken effect, or the rollback is interrupted.
class LostAnswerTest : public testing::Test {
 protected:
  /// Like a failing disk: the journal takes no step of this status.
  void refuseStatus(const std::string& status) const {
    sql("CREATE TRIGGER refuse BEFORE UPDATE ON steps WHEN NEW.status = '" + status +
        "' BEGIN SELECT RAISE(ABORT, 'disk I/O error'); END");
  }
  void acceptStatus() const { sql("DROP TRIGGER refuse"); }
  void sql(const std::string& text) const {
    SQLite::Database database((host.folder / "state" / "vfpass.db").string(),
                              SQLite::OPEN_READWRITE);
    database.exec(text);
  }
  /// Boots the domain; the next attach changes both of its configurations.
  Plan livePlan() {
    host.start();
    host.scope = {true, true};
    return host.attachPlan();
  }
  std::vector<VirtualFunction>& vfs() { return host.kernel.pfs.begin()->second.vfs; }
  /// libvirtd defines the domain, dies before the reply, and is back.
  void attachWithoutReply() {
    const Plan plan = host.attachPlan();
    host.hypervisor.loseReplyOfDefine = true;
    EXPECT_THROW(host.execute(plan), Error);
    host.hypervisor.disconnected = false;
  }
  void giveLeaseOfFirstVfToAnotherDomain() const {
    state::Database database(host.folder / "state", state::Database::Open::createIfMissing,
                             databaseTimeout);
    Lease lease = database.leases().at(0);
    database.dropLease(lease.domain, lease.entry, lease.generation);
    lease.domain = *parseUuid("0f5e9a3c-2222-4222-8333-944455566677");
    database.recordLease(lease);
  }

  Host host;
};

TEST_F(LostAnswerTest, TakesBackAPluggedDeviceBeforeItChangesItsAttributes) {
  const Plan plan = livePlan();
  const std::string before = host.fingerprint();
  host.hypervisor.loseReplyAtLive = 1;  // after the metadata
  EXPECT_THROW(host.execute(plan), Error);
  ASSERT_THAT(host.plugged(), ElementsAre("rail0"));
  host.kernel.holders.push_back(
      {HolderKind::vfio, vfs()[0].address, "QEMU of the domain", "stop it", host.uuid});
  EXPECT_EQ(vfs()[0].settings.vlan, (Vlan{100, 0, VlanProtocol::dot1q})) << "the guest has it";

  host.hypervisor.disconnected = false;
  host.hypervisor.guestRefusesUnplug = true;
  EXPECT_THROW(host.recoverAll(), Error);
  EXPECT_EQ(vfs()[0].settings.vlan, (Vlan{100, 0, VlanProtocol::dot1q})) << "it still has it";
  EXPECT_EQ(vfs()[0].driver, "vfio-pci");

  host.hypervisor.guestRefusesUnplug = false;
  host.hypervisor.afterUnplug = [this] { host.kernel.holders.clear(); };
  EXPECT_THAT(host.recoverAll(), ElementsAre(EndsWith("rolled back")));
  EXPECT_EQ(host.fingerprint(), before);
  EXPECT_THAT(host.recoverAll(), IsEmpty());
}

TEST_F(LostAnswerTest, ConfiguresNoVfThatItsGuestStillHolds) {
  const Plan plan = livePlan();
  const std::string before = host.fingerprint();
  host.hypervisor.loseReplyAtLive = 1;
  host.hypervisor.reconnects = true;
  host.hypervisor.beforePlug = [this] {
    host.kernel.holders.push_back(
        {HolderKind::vfio, vfs()[0].address, "QEMU of the domain", "stop it", host.uuid});
  };
  EXPECT_THROW(host.execute(plan), Error);
  EXPECT_THAT(host.plugged(), IsEmpty());
  EXPECT_EQ(vfs()[0].settings.vlan, (Vlan{100, 0, VlanProtocol::dot1q})) << "it has not closed it";
  host.kernel.holders.clear();
  EXPECT_THAT(host.recoverAll(), ElementsAre(EndsWith("rolled back")));
  EXPECT_EQ(host.fingerprint(), before);
}

TEST_F(LostAnswerTest, TakesBackTheSecondPluggedDeviceToo) {
  const Plan plan = livePlan();
  const std::string before = host.fingerprint();
  host.hypervisor.loseReplyAtLive = 2;
  EXPECT_THROW(host.execute(plan), Error);
  ASSERT_EQ(host.plugged().size(), 2U);
  host.hypervisor.disconnected = false;
  EXPECT_THAT(host.recoverAll(), ElementsAre(EndsWith("rolled back")));
  EXPECT_EQ(host.fingerprint(), before);
}

TEST_F(LostAnswerTest, UnplugsNothingOfSomebodyElse) {
  const Plan plan = livePlan();
  auto& live = host.hypervisor.domains[0].liveXml;
  live.text().insert(live.text().find("</devices>"),
                     "<hostdev mode='subsystem' type='pci' managed='no'><source><address "
                     "domain='0' bus='9' slot='0' function='1'/></source><alias "
                     "name='ua-vfpass-rail0'/></hostdev>");
  host.hypervisor.normalizeLive(host.hypervisor.domains[0]);
  const std::string before = host.fingerprint();
  EXPECT_THROW(host.execute(plan), Error);
  EXPECT_EQ(host.fingerprint(), before);
}

TEST_F(LostAnswerTest, RestoresXmlThatWasDefinedWithoutAReply) {
  for (const bool detach : {false, true}) {
    Host each;
    if (detach) {
      each.attach();
    }
    const Plan plan = detach ? each.detachPlan() : each.attachPlan();
    const std::string before = each.fingerprint();
    each.hypervisor.loseReplyOfDefine = true;
    EXPECT_THROW(each.execute(plan), Error);
    each.hypervisor.disconnected = false;
    EXPECT_THAT(each.recoverAll(), ElementsAre(EndsWith("rolled back")));
    EXPECT_EQ(each.fingerprint(), before);
  }
}

TEST_F(LostAnswerTest, RestoresXmlOfWhichLibvirtKeptNotAllElements) {
  const Plan plan = host.attachPlan();
  const std::string before = host.fingerprint();
  host.hypervisor.afterDefine = [this] {
    std::string& xml = host.hypervisor.domains[0].persistentXml.text();
    const auto device = xml.find("<hostdev");
    if (device != std::string::npos) {
      const auto line = xml.rfind('\n', device);
      xml.erase(line, xml.find("</hostdev>") + std::string("</hostdev>").size() - line);
    }
  };
  EXPECT_THROW(host.execute(plan), Error);
  EXPECT_EQ(host.fingerprint(), before);
  EXPECT_THAT(host.recoverAll(), IsEmpty());
}

TEST_F(LostAnswerTest, RollsNothingBackUnlessItCanRecordThatItDoes) {
  const Plan plan = host.attachPlan();
  const std::string before = host.fingerprint();
  refuseStatus("undoing");
  host.hypervisor.refuseDefine = true;
  EXPECT_THROW(host.execute(plan), Error);
  EXPECT_EQ(vfs()[0].driver, "vfio-pci");
  EXPECT_EQ(host.leases().size(), 2U);
  acceptStatus();
  EXPECT_THAT(host.recoverAll(), ElementsAre(EndsWith("rolled back")));
  EXPECT_EQ(host.fingerprint(), before);
}

// A domain start has taken over the leases while libvirt defined the domain.
TEST_F(LostAnswerTest, YieldsToAStartOnlyIfItCanRecordThatItRollsBack) {
  host.attach();
  const Plan plan = host.detachPlan();
  const Plan prepare = host.preparePlan();
  host.hypervisor.afterDefine = [&] {
    host.hypervisor.afterDefine = nullptr;
    host.execute(prepare);
  };
  refuseStatus("undoing");
  EXPECT_THROW(host.execute(plan), Error);
  EXPECT_FALSE(domain::parseDomain(host.xml()).managed) << "no inverse has run";
  acceptStatus();
  EXPECT_THAT(host.recoverAll(), ElementsAre(HasSubstr("rolled back: the domain is running")));
  EXPECT_TRUE(domain::parseDomain(host.xml()).managed);
  EXPECT_EQ(host.leases()[0].state, LeaseState::starting);
}

// The rollback of new terms could not begin, and somebody has started the domain meanwhile.
TEST_F(LostAnswerTest, LeavesAGuestItsVfThatWasStartedBeforeTheRollback) {
  host.attach();
  host.mapping.vfs[0].settings.vlan = Vlan{300, 0, VlanProtocol::dot1q};
  attachWithoutReply();
  host.startWithHook();
  const std::string started = host.fingerprint();
  EXPECT_THAT(host.recoverAll(), ElementsAre(HasSubstr("the domain has been started")));
  EXPECT_EQ(vfs()[0].settings.vlan, (Vlan{300, 0, VlanProtocol::dot1q})) << "the guest has it";
  EXPECT_EQ(host.leases()[0].state, LeaseState::running);
  EXPECT_EQ(host.fingerprint(), started);
  EXPECT_THAT(host.recoverAll(), IsEmpty());
}

TEST_F(LostAnswerTest, LeavesAGuestItsFirstVfThatWasStartedBeforeTheRollback) {
  attachWithoutReply();
  host.startWithHook();
  const std::string started = host.fingerprint();
  EXPECT_THAT(host.recoverAll(), ElementsAre(HasSubstr("the domain has been started")));
  EXPECT_EQ(host.fingerprint(), started);
}

TEST_F(LostAnswerTest, RollsBackOnceSuchAGuestHasStopped) {
  const std::string before = host.fingerprint();
  attachWithoutReply();
  host.execute(host.preparePlan());
  host.execute(plan::planRelease(host.uuid, "train0", host.leases(), host.kernel.inventory(),
                                 host.kernel.bootId()));
  EXPECT_THAT(host.recoverAll(), ElementsAre(EndsWith("rolled back")));
  EXPECT_EQ(host.fingerprint(), before);
}

// Also the rollback at once, after a binding that did not return.
TEST_F(LostAnswerTest, RollsBackNoDeviceThatAnotherDomainHasLeased) {
  bool given = false;
  host.checkpoint = [&] {
    if (!given && vfs()[0].settings.vlan == Vlan{100, 0, VlanProtocol::dot1q}) {
      given = true;
      giveLeaseOfFirstVfToAnotherDomain();
    }
  };
  host.kernel.hangingUnbinds = {vfs()[1].address};
  EXPECT_THROW(host.attach(), TimeoutError);
  ASSERT_TRUE(given);
  EXPECT_EQ(vfs()[0].driver, "vfio-pci");
  EXPECT_EQ(vfs()[0].settings.vlan, (Vlan{100, 0, VlanProtocol::dot1q}));
}

TEST_F(LostAnswerTest, RecoveryTakesBackWhatItHasPluggedItself) {
  const Plan plan = livePlan();
  const std::string before = host.fingerprint();
  host.hypervisor.killAfterLive = 0;  // the metadata, which recovery writes again
  EXPECT_THROW(host.execute(plan), fake::Killed);
  host.hypervisor.killAfterLive = -1;
  host.hypervisor.reconnects = true;
  host.hypervisor.loseReplyAtLive = 3;  // of the second device, which is plugged
  EXPECT_THAT(host.recoverAll(), ElementsAre(EndsWith("rolled back")));
  EXPECT_THAT(host.plugged(), IsEmpty());
  EXPECT_EQ(host.fingerprint(), before);
}

// Reading all leases and operations for each of many operations would take quadratic time. Whoever
// reads the other VM's records here fails.
TEST_F(LostAnswerTest, RecoveryReadsNothingOfUnrelatedVms) {
  host.attach();
  const Plan plan = host.detachPlan();
  Lease other = host.leases().front();
  other.domain = *parseUuid("00000000-0000-0000-0000-000000000099");
  other.pf = {0, 9, 0, 0};
  other.device = {0, 9, 0, 1};
  state::Database database(host.folder / "state", state::Database::Open::createIfMissing,
                           databaseTimeout);
  database.recordLease(other);
  const DropLease drop{other.domain, other.entry, other.generation, other.pf};
  database.beginOperation({PlanKind::detach, other.domain, "other", {{drop, {}, ""}}, {}}, "boot");
  sql("UPDATE leases SET lease = '{' WHERE pf = '0000:09:00.0'");
  sql("UPDATE steps SET action = '{'");
  host.hypervisor.killAfterDefine = true;
  EXPECT_THROW(host.execute(plan), fake::Killed);
  host.hypervisor.killAfterDefine = false;
  Tools tools = host.tools(database);
  const auto recovered = recover(tools, host.uuid);
  ASSERT_EQ(recovered.done.size(), 1U);
  EXPECT_THAT(recovered.done[0].line, EndsWith("completed"));
  EXPECT_NE(vfs()[0].driver, "vfio-pci");
}

TEST_F(LostAnswerTest, GoesOnWithARollbackWhateverReadsBack) {
  const Plan plan = host.attachPlan();
  const std::string before = host.fingerprint();
  host.hypervisor.afterDefine = [this] {
    host.hypervisor.refuseDefine = true;
    host.hypervisor.afterDefine = nullptr;
  };
  host.hypervisor.loseReplyOfDefine = true;
  EXPECT_THROW(host.execute(plan), Error);
  host.hypervisor.disconnected = false;
  EXPECT_THROW(host.recoverAll(), Error) << "libvirt has the new XML, and refuses the old one";
  EXPECT_EQ(host.leases().size(), 2U);
  host.hypervisor.refuseDefine = false;
  EXPECT_THAT(host.recoverAll(), ElementsAre(EndsWith("rolled back")));
  EXPECT_EQ(host.fingerprint(), before);
}

TEST_F(LostAnswerTest, DropsTheOtherLeaseAfterARollbackThatWasInterrupted) {
  const Plan plan = host.attachPlan();
  const std::string before = host.fingerprint();
  host.hypervisor.killBeforeDefine = true;
  EXPECT_THROW(host.execute(plan), fake::Killed);
  host.hypervisor.killBeforeDefine = false;
  sql("CREATE TRIGGER refuse BEFORE UPDATE ON steps WHEN NEW.status = 'undone' AND NEW.position = "
      "1 "
      "BEGIN SELECT RAISE(ABORT, 'disk I/O error'); END");
  EXPECT_THROW(host.recoverAll(), Error);
  ASSERT_EQ(host.leases().size(), 1U);
  acceptStatus();
  EXPECT_THAT(host.recoverAll(), ElementsAre(EndsWith("rolled back")));
  EXPECT_EQ(host.fingerprint(), before);
}

// Every device has an owner from the commit with which its operation begins.
TEST_F(LostAnswerTest, AnotherDomainCannotLeaseADeviceOfAnOpenOperation) {
  const Plan plan = host.attachPlan();
  host.kernel.effects = 0;
  host.kernel.killBeforeEffect = 1;
  EXPECT_THROW(host.execute(plan), fake::Killed);
  host.kernel.killBeforeEffect = -1;
  const auto leases = host.leases();
  ASSERT_EQ(leases.size(), 2U);
  state::Database database(host.folder / "state", state::Database::Open::createIfMissing,
                           std::chrono::milliseconds(2000));
  for (Lease lease : leases) {
    lease.domain = *parseUuid("0f5e9a3c-2222-4222-8333-944455566677");
    EXPECT_THROW(database.recordLease(lease), Error);
  }
}

TEST_F(LostAnswerTest, BeginsNothingIfAnotherDomainHasLeasedADevice) {
  const Plan plan = host.attachPlan();
  const std::string before = host.fingerprint();
  Lease taken = std::get<RecordLease>(plan.steps.at(1).action).lease;
  taken.domain = *parseUuid("0f5e9a3c-2222-4222-8333-944455566677");
  {
    state::Database database(host.folder / "state", state::Database::Open::createIfMissing,
                             std::chrono::milliseconds(2000));
    database.recordLease(taken);
  }
  EXPECT_THROW(host.execute(plan), Error);
  ASSERT_EQ(host.leases().size(), 1U);
  EXPECT_EQ(host.leases()[0].domain, taken.domain);
  EXPECT_THAT(host.recoverAll(), IsEmpty());
  {
    state::Database database(host.folder / "state", state::Database::Open::createIfMissing,
                             std::chrono::milliseconds(2000));
    database.dropLease(taken.domain, taken.entry, taken.generation);
  }
  EXPECT_EQ(host.fingerprint(), before);
}

// In the journal of an earlier version, another VM could lease the VF before the killed attach did.
TEST_F(LostAnswerTest, LeavesADeviceAloneThatAnotherDomainHasLeased) {
  const Plan plan = host.attachPlan();
  host.kernel.effects = 0;
  host.kernel.killAfterEffect = 1;
  EXPECT_THROW(host.execute(plan), fake::Killed);
  host.kernel.killAfterEffect = -1;
  sql("UPDATE steps SET status = 'started' WHERE status = 'done'");
  giveLeaseOfFirstVfToAnotherDomain();
  vfs()[0].driver = "vfio-pci";
  vfs()[0].settings.vlan = Vlan{300, 0, VlanProtocol::dot1q};
  host.recoverAll();
  EXPECT_EQ(vfs()[0].driver, "vfio-pci");
  EXPECT_EQ(vfs()[0].settings.vlan, (Vlan{300, 0, VlanProtocol::dot1q}));
  EXPECT_EQ(vfs()[1].settings.vlan, (Vlan{7, 3, VlanProtocol::dot1q})) << "its own VF";
  EXPECT_EQ(host.leases().size(), 1U);
}

// The entry that the mapping has lost is restored after the XML, and has no way back.
TEST_F(LostAnswerTest, CompletesAnAttachThatHasBegunToRestoreAnEntry) {
  host.attach();
  host.mapping.vfs.pop_back();
  const Plan plan = host.attachPlan();
  host.kernel.effects = 0;
  host.kernel.failAtEffect = 1;
  EXPECT_THROW(host.execute(plan), Error);
  host.kernel.failAtEffect = -1;
  EXPECT_THAT(host.recoverAll(), ElementsAre(EndsWith("completed")));
  EXPECT_TRUE(host.attachPlan().steps.empty());
  EXPECT_EQ(host.leases().size(), 1U);
  EXPECT_EQ(vfs()[1].driver, "mlx5_core");
}

TEST_F(LostAnswerTest, LeavesADomainAloneWhileAnotherCommandHasItsLock) {
  host.hypervisor.killBeforeDefine = true;
  EXPECT_THROW(host.execute(host.attachPlan()), fake::Killed);
  host.hypervisor.killBeforeDefine = false;
  state::Database database(host.folder / "state", state::Database::Open::createIfMissing,
                           std::chrono::milliseconds(2000));
  Tools tools = host.tools(database);
  const auto lock = state::FileLock::acquire(state::domainLockFile(host.folder / "run", host.uuid),
                                             std::chrono::milliseconds(100));
  EXPECT_THAT(recover(tools).done, IsEmpty());
  EXPECT_EQ(recover(tools, std::nullopt, host.uuid).done.size(), 1U) << "the holder itself";
}

TEST_F(LostAnswerTest, RollsBackTheHostIfTheDomainWasUndefinedSince) {
  host.attach();
  const auto leases = host.leases();
  host.mapping.vfs[0].settings.vlan = Vlan{300, 0, VlanProtocol::dot1q};
  host.hypervisor.killBeforeDefine = true;
  EXPECT_THROW(host.execute(host.attachPlan()), fake::Killed);
  const auto undefined = std::exchange(host.hypervisor.domains, {});
  EXPECT_THAT(host.recoverAll(), ElementsAre(EndsWith("rolled back")));
  EXPECT_EQ(host.leases(), leases);
  EXPECT_EQ(vfs()[0].settings.vlan, (Vlan{100, 0, VlanProtocol::dot1q}));
  EXPECT_THAT(host.recoverAll(), IsEmpty());
}

// All of its steps concern the function alone.
TEST_F(LostAnswerTest, LocksThePciFunctionThatItReturns) {
  const Plan plan{
      PlanKind::detach,
      host.uuid,
      "train0",
      {{BindDriver{*parsePciAddress("0000:03:00.0"), "nvidia", ""}, {}, "", false},
       {DropLease{host.uuid, "gpu0", 1, *parsePciAddress("0000:03:00.0")}, {}, "", false}},
      {}};
  EXPECT_THAT(lockedPfs(plan), ElementsAre(*parsePciAddress("0000:03:00.0")));
}

// libvirt does not sync the directory of its definitions.
TEST_F(LostAnswerTest, RecordsNoDefinitionThatAPowerFailureCouldUndo) {
  const Plan plan = host.attachPlan();
  const std::string before = host.fingerprint();
  host.hypervisor.refuseSync = true;
  EXPECT_THROW(host.execute(plan), Error);
  EXPECT_THROW(host.recoverAll(), Error) << "the disk fails again";

  host.hypervisor.refuseSync = false;
  EXPECT_THAT(host.recoverAll(), ElementsAre(EndsWith("rolled back")));
  EXPECT_EQ(host.fingerprint(), before);
  EXPECT_THAT(host.recoverAll(), IsEmpty());

  host.attach();
  EXPECT_TRUE(host.hypervisor.definitionsSynced);
  host.execute(host.detachPlan());
  EXPECT_TRUE(host.hypervisor.definitionsSynced);
}

// The process that made it may have died before it could sync the directory.
TEST_F(LostAnswerTest, RecoverySyncsADefinitionThatIsInEffect) {
  host.hypervisor.killAfterDefine = true;
  EXPECT_THROW(host.execute(host.attachPlan()), fake::Killed);
  host.hypervisor.killAfterDefine = false;
  EXPECT_THAT(host.recoverAll(), ElementsAre(EndsWith("completed")));
  EXPECT_TRUE(host.hypervisor.definitionsSynced);
}

TEST_F(LostAnswerTest, RollsBackIfAnEarlierDefinitionIsThereAfterTheLastStep) {
  const Plan plan = host.attachPlan();
  const std::string before = host.fingerprint();
  const std::string earlier = host.xml();
  sql("CREATE TRIGGER refuse BEFORE DELETE ON operations "
      "BEGIN SELECT RAISE(ABORT, 'disk I/O error'); END");
  EXPECT_THROW(host.execute(plan), Error) << "all steps are done";
  acceptStatus();
  host.hypervisor.domains[0].persistentXml = earlier;
  EXPECT_THAT(host.recoverAll(), ElementsAre(EndsWith("rolled back")));
  EXPECT_EQ(host.fingerprint(), before);
}

}  // namespace
}  // namespace vfpass::apply
