#include <SQLiteCpp/Database.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fake/seal_key.hpp"
#include "test_host.hpp"
#include "vfpass/apply/adopt_leases.hpp"
#include "vfpass/apply/quarantine_places.hpp"
#include "vfpass/apply/recover.hpp"
#include "vfpass/domain/domain_xml.hpp"
#include "vfpass/plan/plan_hook.hpp"
#include "vfpass/state/memory_checks.hpp"

namespace vfpass::apply {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

// A domain with two VFs that has just stopped: they are to be reset.
class HandOverTest : public testing::Test {
 protected:
  HandOverTest() {
    host.attach();
    host.execute(host.preparePlan());
    device = host.leases().at(0).device;
  }
  Plan releasePlan() {
    return plan::planRelease(host.uuid, "train0", host.leases(), host.kernel.inventory(),
                             host.kernel.bootId());
  }
  static DropLease dropOf(const Lease& lease) {
    return {lease.domain, lease.entry, lease.generation, lease.pf,
            HandedOver{lease.domainName, lease.device, vfOf(lease).index, false}};
  }
  [[nodiscard]] state::Database database() const {
    return {host.folder / "state", state::Database::Open::createIfMissing,
            std::chrono::milliseconds(1000)};
  }

  Host host;
  PciAddress device;
};

TEST_F(HandOverTest, ResetIsRecorded) {
  host.execute(releasePlan());
  const auto use = database().deviceUse(device);
  ASSERT_TRUE(use && use->reset);
  EXPECT_EQ(use->domain, host.uuid);
  EXPECT_EQ(use->reset->methods, (std::vector<std::string>{"flr"}));
  EXPECT_EQ(use->reset->failure, "");
  EXPECT_THAT(database().quarantined(), IsEmpty());
}

// The rebuilt leases have no uses: the reset begins one, and the lease that is recorded after it
// another.
TEST_F(HandOverTest, ResetIsRecordedIfTheDatabaseWasLostDuringTheRun) {
  const auto parsed = domain::parseDomain(host.xml());
  std::filesystem::remove_all(host.folder / "state");
  state::Database rebuilt = database();
  ASSERT_THAT(adoptLeases(rebuilt, host.kernel, fake::sealKey(), {parsed}, {host.uuid}).adopted,
              SizeIs(2));
  host.execute(releasePlan());
  const auto use = rebuilt.deviceUse(device);
  ASSERT_TRUE(use && use->reset);
  EXPECT_EQ(use->reset->methods, (std::vector<std::string>{"flr"}));
}

// The reset after an earlier run says nothing about what the last one left in the device.
TEST_F(HandOverTest, StartEndsTheValidityOfAnEarlierReset) {
  host.execute(releasePlan());
  ASSERT_TRUE(database().deviceUse(device)->reset);
  host.execute(host.preparePlan());
  EXPECT_FALSE(database().deviceUse(device)->reset);
  host.execute(releasePlan());
  EXPECT_TRUE(database().deviceUse(device)->reset);
}

TEST_F(HandOverTest, FailedResetPutsTheDeviceIntoQuarantine) {
  host.kernel.brokenResets = {device};
  try {
    host.execute(releasePlan());
    ADD_FAILURE() << "the reset did not fail";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("EIO) (the device is in quarantine now)"));
  }
  const auto found = database().quarantined();
  ASSERT_THAT(found, SizeIs(1)) << "the other VF was reset";
  EXPECT_EQ(found[0].device, device);
  EXPECT_THAT(found[0].reason, HasSubstr("its reset failed: " + toString(device)));
  EXPECT_THAT(database().deviceUse(device)->reset->failure, HasSubstr("EIO"));
}

TEST_F(HandOverTest, MemoryThatSurvivesTheResetPutsTheDeviceIntoQuarantine) {
  state::setMemoryChecks(host.folder / "run", MemoryChecks::on);
  host.kernel.memories[device] = {MemoryCheck::Result::survived, ""};
  host.execute(releasePlan());
  const auto found = database().quarantined();
  ASSERT_THAT(found, SizeIs(1));
  EXPECT_EQ(found[0].device, device);
  EXPECT_EQ(found[0].reason, "its memory survived the reset");
  EXPECT_EQ(database().deviceUse(device)->reset->memory, "survived");
}

// The quarantine began with a reset before the end of the lease.
TEST_F(HandOverTest, RecordHasTheQuarantineAndTheMemoryThatSurvived) {
  state::setMemoryChecks(host.folder / "run", MemoryChecks::on);
  host.kernel.memories[device] = {MemoryCheck::Result::survived, ""};
  host.execute(releasePlan());
  host.execute(host.detachPlan());
  ASSERT_THAT(database().handOvers(), SizeIs(2));
  for (const auto& [record, text, seal] : database().handOvers()) {
    const bool isBad = record.device == device;
    EXPECT_EQ(record.quarantine, isBad ? "its memory survived the reset" : "");
    EXPECT_EQ(testing::Value(record.errors, Contains("its memory survived the reset")), isBad);
    EXPECT_EQ(testing::Value(record.unobserved, Contains(HasSubstr("memory"))), !isBad);
  }
}

TEST_F(HandOverTest, MemoryIsCheckedOnlyIfThatIsOn) {
  using state::memoryChecks;
  using state::setMemoryChecks;
  const auto run = host.folder / "run";
  host.kernel.memories[device] = {MemoryCheck::Result::survived, ""};
  setMemoryChecks(run, MemoryChecks::on);
  EXPECT_EQ(memoryChecks(run), MemoryChecks::on);
  setMemoryChecks(run, MemoryChecks::off);
  std::filesystem::create_directory(run / "gpu-memory-check");  // something else than a file
  EXPECT_EQ(memoryChecks(run), MemoryChecks::off);
  EXPECT_THROW(setMemoryChecks(run, MemoryChecks::on), Error);
  std::filesystem::create_symlink("loop", host.folder / "loop");  // unreadable, also for root
  EXPECT_EQ(state::observedMemoryChecks(host.folder / "loop"), std::nullopt);
  EXPECT_EQ(state::observedMemoryChecks(host.folder / "none"), MemoryChecks::off);
  EXPECT_EQ(memoryChecks(host.folder / "loop"), MemoryChecks::off);
  host.execute(releasePlan());
  EXPECT_THAT(database().quarantined(), IsEmpty());
  EXPECT_EQ(database().deviceUse(device)->reset->memory, "not checked: off");
}

TEST_F(HandOverTest, MemoryThatIsGoneIsObserved) {
  state::setMemoryChecks(host.folder / "run", MemoryChecks::on);
  host.kernel.memories[device] = {MemoryCheck::Result::gone, ""};
  host.execute(releasePlan());
  EXPECT_THAT(database().quarantined(), IsEmpty());
  host.execute(host.detachPlan());
  ASSERT_THAT(database().handOvers(), SizeIs(2));
  for (const auto& stored : database().handOvers()) {
    const auto& unobserved = stored.record.unobserved;
    const bool isKnown = stored.record.device == device;
    EXPECT_EQ(stored.record.reset->memory, isKnown ? "gone" : "not checked: ");
    EXPECT_EQ(testing::Value(unobserved, Contains(HasSubstr("memory"))), !isKnown);
  }
}

TEST_F(HandOverTest, TimeoutOfAResetStaysOne) {
  host.kernel.hangingResets = {device};
  EXPECT_THROW(host.execute(releasePlan()), TimeoutError);
  EXPECT_THAT(database().quarantined(), SizeIs(1));
}

TEST_F(HandOverTest, QuarantineOutlivesARecoveryThatResetsTheDevice) {
  host.kernel.brokenResets = {device};
  EXPECT_THROW(host.execute(releasePlan()), Error);
  host.kernel.brokenResets.clear();
  EXPECT_THAT(host.recoverAll(), SizeIs(1));
  EXPECT_THAT(database().quarantined(), SizeIs(1));
  EXPECT_EQ(database().deviceUse(device)->reset->failure, "");
}

// Nothing may touch a device whose reset hangs, even if the database cannot record that.
TEST_F(HandOverTest, FailedRecordLeavesTheFailureOfTheReset) {
  SQLite::Database((host.folder / "state" / "vfpass.db").string(), SQLite::OPEN_READWRITE)
      .exec(
          "CREATE TRIGGER broken BEFORE INSERT ON quarantine BEGIN SELECT RAISE(ABORT, 'broken'); "
          "END");
  host.kernel.hangingResets = {device};
  try {
    host.execute(releasePlan());
    ADD_FAILURE() << "the reset did not fail";
  } catch (const TimeoutError& error) {
    EXPECT_THAT(error.what(), HasSubstr("did not return"));
    EXPECT_THAT(error.what(), AllOf(HasSubstr("broken"), Not(HasSubstr("in quarantine"))));
  }
  EXPECT_THAT(database().openOperations(), SizeIs(1));
}

TEST_F(HandOverTest, AbandonedOperationLeavesTheQuarantine) {
  host.kernel.brokenResets = {device};
  EXPECT_THROW(host.execute(releasePlan()), Error);
  state::Database state = database();
  Tools tools = host.tools(state);
  abandon(tools, state.openOperations().at(0).id);
  EXPECT_THAT(state.openOperations(), IsEmpty());
  EXPECT_THAT(state.quarantined(), SizeIs(1));
}

TEST_F(HandOverTest, EndOfALeaseIsRecordedAndSealed) {
  host.execute(releasePlan());
  host.execute(host.detachPlan());
  const auto records = database().handOvers();
  ASSERT_THAT(records, SizeIs(2));
  for (const auto& [record, text, seal] : records) {
    EXPECT_EQ(record.domain, host.uuid);
    EXPECT_TRUE(record.reset && record.reset->failure.empty());
    EXPECT_TRUE(record.settings);
    EXPECT_THAT(record.errors, IsEmpty());
    EXPECT_TRUE(domain::isSealedRecord(text, seal, host.key));
    EXPECT_FALSE(domain::isSealedRecord(text + " ", seal, host.key));
  }
  EXPECT_THAT(database().quarantined(), IsEmpty());
}

TEST_F(HandOverTest, PfThatCannotBeReadIsAskedOnceForAllItsLeases) {
  host.execute(releasePlan());
  Plan plan{PlanKind::detach, host.uuid, "train0", {}, {}};
  for (const Lease& lease : host.leases()) {
    plan.steps.push_back({dropOf(lease), {}, ""});
  }
  host.kernel.unreadable = true;
  host.execute(plan);
  EXPECT_EQ(host.kernel.failedReads, 1);
  ASSERT_THAT(database().handOvers(), SizeIs(2));
  for (const auto& stored : database().handOvers()) {
    EXPECT_THAT(stored.record.unobserved, Contains(HasSubstr("cannot start a process")));
  }
}

// The PF has other VFs by now, at other addresses.
TEST_F(HandOverTest, AttributesOfAnotherVfAreNotThoseOfTheLease) {
  host.execute(releasePlan());
  Plan plan{PlanKind::detach, host.uuid, "train0", {}, {}};
  DropLease drop = dropOf(host.leases().at(0));
  drop.handedOver->device = PciAddress{0, 9, 0, 1};
  plan.steps.push_back({drop, {}, ""});
  host.execute(plan);
  const auto records = database().handOvers();
  ASSERT_THAT(records, SizeIs(1));
  EXPECT_FALSE(records[0].record.settings);
  EXPECT_THAT(records[0].record.unobserved,
              Contains(HasSubstr("attributes: the VF with its index is at")));
}

// One lease keeps its device with the domain and has no record.
TEST_F(HandOverTest, LeasesEndTogetherOrNotAtAll) {
  host.execute(releasePlan());
  SQLite::Database((host.folder / "state" / "vfpass.db").string(), SQLite::OPEN_READWRITE)
      .exec(
          "CREATE TRIGGER broken BEFORE UPDATE ON ended_leases BEGIN SELECT RAISE(ABORT, "
          "'broken'); END");
  Plan plan{PlanKind::detach, host.uuid, "train0", {}, {}};
  for (const Lease& lease : host.leases()) {
    plan.steps.push_back({dropOf(lease), {}, ""});
  }
  std::get<DropLease>(plan.steps[0].action).handedOver.reset();
  EXPECT_THROW(host.execute(plan), Error);
  EXPECT_THAT(host.leases(), SizeIs(2));
}

// The Host's leases begin without counters, so the errors of this one do not.
TEST_F(HandOverTest, ErrorsSinceTheLeaseBeganPutTheDeviceIntoQuarantine) {
  Host other;
  const PciAddress first = other.kernel.inventory().pfs[0].vfs[0].address;
  const PciAddress second = other.kernel.inventory().pfs[0].vfs[1].address;
  other.kernel.errors = {{first, {7}}, {second, {7}}};
  other.attach();
  other.kernel.errors[first].hardware = 9;
  other.execute(other.detachPlan());
  const state::Database state{other.folder / "state", state::Database::Open::readOnly,
                              std::chrono::milliseconds(1000)};
  ASSERT_THAT(state.quarantined(), SizeIs(1));
  EXPECT_EQ(state.quarantined()[0].device, first);
  EXPECT_THAT(state.quarantined()[0].reason, HasSubstr("counted 2 errors of its hardware or link"));
}

// Of a ConnectX with this serial number.
std::string cardWith(const std::string& serial) { return "15b3:101d function 0 serial " + serial; }

// The identity is from the beginning of the lease: a device whose reset failed may not answer.
TEST_F(HandOverTest, QuarantineFollowsTheCardToAnotherSlot) {
  Host other;
  const PciAddress first = other.kernel.inventory().pfs[0].vfs[0].address;
  other.kernel.identities[pfAddress] = cardWith("1");
  other.attach();
  other.execute(other.preparePlan());
  other.kernel.identities.clear();
  other.kernel.brokenResets = {first};
  EXPECT_THROW(other.execute(plan::planRelease(other.uuid, "train0", other.leases(),
                                               other.kernel.inventory(), other.kernel.bootId())),
               Error);
  const state::Database state{other.folder / "state", state::Database::Open::readOnly,
                              std::chrono::milliseconds(1000)};
  const auto entry = state.quarantined().at(0);
  EXPECT_EQ(entry.identity, "15b3:101d function 0 vf 0 serial 1");
  EXPECT_THAT(locate({entry}, other.kernel)[0].elsewhere, IsEmpty());
  const auto& slot = other.kernel.addPf("0000:af:00.0", "ens2", 8, 1);
  other.kernel.identities = {{pfAddress, cardWith("2")}, {slot.address, cardWith("1")}};
  const auto moved = locate({entry}, other.kernel)[0];
  EXPECT_TRUE(isReplaced(moved));
  EXPECT_THAT(moved.elsewhere, testing::ElementsAre(slot.vfs[0].address));
}

// A VF that its plan creates does not exist when its lease is recorded.
TEST_F(HandOverTest, VfThatIsCreatedHasTheIdentityOfItsPf) {
  Host other(0);
  other.kernel.identities[pfAddress] = cardWith("1");
  other.attach();
  const state::Database state{other.folder / "state", state::Database::Open::readOnly,
                              std::chrono::milliseconds(1000)};
  ASSERT_THAT(other.leases(), SizeIs(2));
  for (const Lease& lease : other.leases()) {
    const auto use = state.deviceUse(lease.device);
    ASSERT_TRUE(use);
    EXPECT_EQ(use->identity, other.kernel.identityOf(lease.device, std::nullopt));
    EXPECT_THAT(use->identity, HasSubstr(" vf "));
  }
}

TEST_F(HandOverTest, CardIsReadOnceForAllItsLeases) {
  Host other;
  other.kernel.identities[pfAddress] = cardWith("1");
  other.attach();
  EXPECT_EQ(other.kernel.identityReads[pfAddress], 1);
}

// Cards without numbers of their own, and the two halves of a Socket Direct card.
TEST_F(HandOverTest, CardAtItsAddressIsNotElsewhere) {
  const PciAddress slot = host.kernel.addFunction("0000:af:00.0", "vfio-pci").address;
  const PciAddress other = host.kernel.addFunction("0000:b0:00.0", "vfio-pci").address;
  host.kernel.identities = {{other, cardWith("same")}, {slot, cardWith("same")}};
  const auto placed = locate({{other, "a reason", "now", cardWith("same")}}, host.kernel)[0];
  EXPECT_EQ(placed.found, placed.identity);
  EXPECT_THAT(placed.elsewhere, IsEmpty());
}

// The devices that VMs have, and one in quarantine at another address.
class PlacesAtAStart : public HandOverTest {
 protected:
  PlacesAtAStart() {
    other.kernel.identities = {{pfAddress, cardWith("1")}, {slot, cardWith("9")}};
    other.attach();
    other.kernel.identityReads.clear();
  }
  std::vector<QuarantinedDevice> locateOwn(const std::string& identity) {
    state::Database state{other.folder / "state", state::Database::Open::createIfMissing,
                          std::chrono::milliseconds(1000)};
    Tools tools = other.tools(state);
    return locateAmong({{slot, "a reason", "now", identity}}, other.leases(), tools);
  }

  Host other;
  PciAddress slot = other.kernel.addFunction("0000:af:00.0", "vfio-pci").address;
};

TEST_F(PlacesAtAStart, NothingIsReadOfDevicesThatTheDomainDoesNotHave) {
  locateOwn("");
  EXPECT_THAT(other.kernel.identityReads, IsEmpty());
  locateOwn(cardWith("9"));
  EXPECT_THAT(other.kernel.identityReads, testing::ElementsAre(testing::Pair(pfAddress, 1)));
}

TEST_F(PlacesAtAStart, CardThatGotIntoTheSlotAfterTheAttachIsFound) {
  other.kernel.identities[pfAddress] = cardWith("2");
  const PciAddress first = other.leases().at(0).device;
  EXPECT_THAT(locateOwn("15b3:101d function 0 vf 0 serial 2")[0].elsewhere,
              testing::ElementsAre(first));
  EXPECT_THAT(locateOwn(cardWith("2"))[0].elsewhere, testing::ElementsAre(pfAddress));
}

TEST_F(PlacesAtAStart, CardThatAttachSawIsNotTheOneWithTheSameNumber) {
  EXPECT_THAT(locateOwn(cardWith("1"))[0].elsewhere, IsEmpty());
}

// A rolled-back attach and `detach --keep` end a lease without a record.
TEST_F(HandOverTest, LeaseAfterOneWithoutARecordBeginsAnew) {
  Host other;
  const PciAddress first = other.kernel.inventory().pfs[0].vfs[0].address;
  other.kernel.errors = {{first, {7}}};
  other.attach();
  Plan plan{PlanKind::detach, other.uuid, "train0", {}, {}};
  for (const Lease& lease : other.leases()) {
    DropLease drop = dropOf(lease);
    drop.handedOver.reset();
    plan.steps.push_back({drop, {}, ""});
  }
  other.execute(plan);
  other.kernel.errors = {{first, {9}}};
  other.kernel.identities[pfAddress] = cardWith("2");
  other.attach();
  const state::Database state{other.folder / "state", state::Database::Open::readOnly,
                              std::chrono::milliseconds(1000)};
  const auto use = state.deviceUse(first);
  EXPECT_EQ(use->began->errors, (ErrorCounts{9}));
  EXPECT_EQ(use->identity, "15b3:101d function 0 vf 0 serial 2");
}

// Others would wait for the database meanwhile, and hooks give up after three seconds.
TEST_F(HandOverTest, HostIsReadOutsideOfTransactions) {
  Host other;
  int reads = 0;
  other.kernel.beforeIdentity = [&] {
    SQLite::Database raw((other.folder / "state" / "vfpass.db").string(), SQLite::OPEN_READWRITE);
    EXPECT_NO_THROW(raw.exec("BEGIN IMMEDIATE; ROLLBACK"));
    ++reads;
  };
  other.attach();
  EXPECT_EQ(reads, 1);
}

// Removed and found again, a device counts from 0.
TEST_F(HandOverTest, SmallerCounterIsCountedFromZero) {
  Host other;
  const PciAddress first = other.kernel.inventory().pfs[0].vfs[0].address;
  const PciAddress second = other.kernel.inventory().pfs[0].vfs[1].address;
  other.kernel.errors = {{first, {7}}, {second, {7}}};
  other.attach();
  other.kernel.errors = {{first, {2}}, {second, {0}}};
  other.execute(other.detachPlan());
  const state::Database state{other.folder / "state", state::Database::Open::readOnly,
                              std::chrono::milliseconds(1000)};
  ASSERT_THAT(state.quarantined(), SizeIs(1));
  EXPECT_EQ(state.quarantined()[0].device, first);
  EXPECT_THAT(state.quarantined()[0].reason, HasSubstr("counted 2 errors of"));
}

// The counters are those of this boot.
TEST_F(HandOverTest, ErrorsOfEarlierBootsAreNotObserved) {
  Host other;
  const PciAddress first = other.kernel.inventory().pfs[0].vfs[0].address;
  other.kernel.errors = {{first, {0}}};
  other.attach();
  other.kernel.boot = "boot-2";
  other.execute(other.detachPlan());
  const state::Database state{other.folder / "state", state::Database::Open::readOnly,
                              std::chrono::milliseconds(1000)};
  std::vector<std::string> unobserved;
  for (const auto& stored : state.handOvers()) {
    unobserved.insert(unobserved.end(), stored.record.unobserved.begin(),
                      stored.record.unobserved.end());
  }
  EXPECT_THAT(unobserved, Contains("errors: those of earlier boots are not known"));
}

// VFs that vfpass has created are removed with the last lease, after they were looked at.
TEST_F(HandOverTest, VfsThatAreRemovedAreReadBefore) {
  Host other(0);
  other.attach();
  const PciAddress first = other.leases().at(0).device;
  other.kernel.errors[first] = {2};
  other.execute(other.detachPlan());
  EXPECT_THAT(other.kernel.inventory().pfs[0].vfs, IsEmpty());
  const state::Database state{other.folder / "state", state::Database::Open::readOnly,
                              std::chrono::milliseconds(1000)};
  ASSERT_THAT(state.handOvers(), SizeIs(2));
  for (const auto& stored : state.handOvers()) {
    EXPECT_TRUE(stored.record.settings);
  }
  ASSERT_THAT(state.quarantined(), SizeIs(1));
  EXPECT_EQ(state.quarantined()[0].device, first);
}

TEST_F(HandOverTest, MissingFirmwareVersionIsNamed) {
  host.execute(releasePlan());
  host.execute(host.detachPlan());
  for (const auto& stored : database().handOvers()) {
    EXPECT_EQ(stored.record.firmware, "");
    EXPECT_THAT(stored.record.unobserved, Contains(HasSubstr("firmware: its PF has no RDMA")));
  }
}

// The port above has gone on counting while the device was removed.
TEST_F(HandOverTest, EachCounterBeginsByItself) {
  Host other;
  const PciAddress first = other.kernel.inventory().pfs[0].vfs[0].address;
  other.kernel.errors = {{first, {7, 5, 3}}};
  other.attach();
  other.kernel.errors = {{first, {7, 0, 3}}};
  other.execute(other.detachPlan());
  const state::Database state{other.folder / "state", state::Database::Open::readOnly,
                              std::chrono::milliseconds(1000)};
  EXPECT_THAT(state.quarantined(), IsEmpty());
}

// A guest can make its device ask for what nobody has.
TEST_F(HandOverTest, ErrorsThatAGuestCanCauseAreRecordedOnly) {
  Host other;
  const PciAddress first = other.kernel.inventory().pfs[0].vfs[0].address;
  other.kernel.errors = {{first, {0, 7, 4}}};
  other.attach();
  other.kernel.errors = {{first, {0, 9, 5}}};
  other.execute(other.detachPlan());
  const state::Database state{other.folder / "state", state::Database::Open::readOnly,
                              std::chrono::milliseconds(1000)};
  EXPECT_THAT(state.quarantined(), IsEmpty());
  std::vector<std::string> errors;
  for (const auto& stored : state.handOvers()) {
    errors.insert(errors.end(), stored.record.errors.begin(), stored.record.errors.end());
  }
  EXPECT_THAT(errors, testing::ElementsAre("AER has counted 2 errors that a guest can cause",
                                           "AER has counted 1 corrected error"));
}

TEST_F(HandOverTest, XidsSinceTheLeaseBeganPutTheDeviceIntoQuarantine) {
  Host other;
  const PciAddress first = other.kernel.inventory().pfs[0].vfs[0].address;
  const PciAddress second = other.kernel.inventory().pfs[0].vfs[1].address;
  other.kernel.xidLogs = {{first, {true, 0, 40, {}}}, {second, {true, 0, 40, {}}}};
  other.attach();
  other.kernel.xidLogs = {{first, {true, 0, 90, {{39, 48}, {40, 79}, {41, 79}}}},
                          {second, {true, 41, 90, {{39, 48}}}}};
  other.execute(other.detachPlan());
  const state::Database state{other.folder / "state", state::Database::Open::readOnly,
                              std::chrono::milliseconds(1000)};
  ASSERT_THAT(state.quarantined(), SizeIs(1));
  EXPECT_EQ(state.quarantined()[0].device, first);
  EXPECT_THAT(state.quarantined()[0].reason, testing::StartsWith("NVIDIA's driver has logged Xid "
                                                                 "79 since domain "));
  const auto records = state.handOvers();
  const auto old = std::ranges::find_if(
      records, [&](const auto& stored) { return stored.record.device == second; });
  EXPECT_THAT(old->record.unobserved, Contains(HasSubstr("Xids: the kernel log does not go back")));
}

TEST_F(HandOverTest, UnreadableLogIsNamed) {
  host.kernel.xidLogs = {{device, {}}};
  host.execute(releasePlan());
  host.execute(host.detachPlan());
  std::vector<std::string> unobserved;
  for (const auto& stored : database().handOvers()) {
    unobserved.insert(unobserved.end(), stored.record.unobserved.begin(),
                      stored.record.unobserved.end());
  }
  EXPECT_THAT(unobserved, Contains("Xids: the kernel log cannot be read"));
}

TEST_F(HandOverTest, MissingCountersAreNamedAndNoErrors) {
  host.execute(releasePlan());
  host.execute(host.detachPlan());
  for (const auto& stored : database().handOvers()) {
    EXPECT_THAT(stored.record.errors, IsEmpty());
    EXPECT_THAT(stored.record.unobserved, Contains(HasSubstr("no AER counters")));
  }
  EXPECT_THAT(database().quarantined(), IsEmpty());
}

// Killed after the reset and before its record: recovery resets again.
TEST_F(HandOverTest, KilledResetIsRepeated) {
  host.kernel.effects = 0;
  host.kernel.killAfterEffect = 1;
  EXPECT_THROW(host.execute(releasePlan()), fake::Killed);
  host.kernel.killAfterEffect = -1;
  EXPECT_THAT(host.recoverAll(), SizeIs(1));
  EXPECT_THAT(database().quarantined(), IsEmpty());
  EXPECT_EQ(database().deviceUse(device)->reset->failure, "");
}

}  // namespace
}  // namespace vfpass::apply
