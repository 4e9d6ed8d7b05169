// Two domains with VFs that vfpass created for the first of them are detached at the same time.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test_host.hpp"

namespace vfpass::apply {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::IsEmpty;

/// The PF had no VFs. The plan of the domain's detach is made while another domain has a lease.
class UnusedVfsTest : public testing::Test {
 protected:
  UnusedVfsTest() : host(0) {
    host.attach();
    state::Database database = openDatabase();
    other = database.leases().front();
    other.domain = *parseUuid("00000000-0000-0000-0000-000000000099");
    other.domainName = "other";
    vfOf(other).index = 3;
    other.device = vfs()[3].address;
    other.generation = database.nextGeneration();
    database.recordLease(other);
    plan = host.detachPlan();
  }
  [[nodiscard]] state::Database openDatabase() const {
    return state::Database(host.folder / "state", state::Database::Open::createIfMissing,
                           std::chrono::seconds(2));
  }
  void endOtherLease() const {
    openDatabase().dropLease(other.domain, other.entry, other.generation);
  }
  /// Each of them ends the only lease of its domain, and has not begun.
  void interruptDetaches(unsigned count) {
    state::Database database = openDatabase();
    for (unsigned each = 0; each < count; ++each) {
      Lease lease = other;
      lease.domain = *parseUuid("00000000-0000-0000-0000-0000000000" + std::to_string(10 + each));
      vfOf(lease).index = 100 + each;
      lease.device = {0, 2, static_cast<std::uint8_t>(each), 0};
      lease.generation = database.nextGeneration();
      database.recordLease(lease);
      const DropLease drop{lease.domain, lease.entry, lease.generation, lease.pf};
      database.beginOperation({PlanKind::detach, lease.domain, "vm", {{drop, {}, ""}}, {}},
                              host.kernel.bootId());
    }
  }
  std::vector<VirtualFunction>& vfs() { return host.kernel.pfs.begin()->second.vfs; }
  /// A domain that is shut off names the VF that the other lease has.
  void nameInDefinition() {
    host.readDefinitions = [device = other.device] {
      const DomainSummary hand{{1}, "hand0", false, true, {{device, "", {}}}, {}, {}};
      return Definitions{{hand}, {}, {}};
    };
  }

  Host host;
  Lease other;
  Plan plan;
};

TEST_F(UnusedVfsTest, StayIfTheOtherLeaseRemains) {
  host.execute(plan);
  EXPECT_THAT(vfs(), testing::SizeIs(testing::Gt(3)));
}

TEST_F(UnusedVfsTest, AreRemovedIfTheOtherLeaseHasEndedMeanwhile) {
  host.hypervisor.afterDefine = [this] { endOtherLease(); };
  host.execute(plan);
  EXPECT_THAT(vfs(), IsEmpty());
  EXPECT_THAT(host.recoverAll(), IsEmpty());
}

TEST_F(UnusedVfsTest, StayIfSomebodyHasOneWithoutALease) {
  host.hypervisor.afterDefine = [this] {
    endOtherLease();
    vfs()[3].driver = "vfio-pci";
  };
  host.execute(plan);
  EXPECT_THAT(vfs(), testing::SizeIs(testing::Gt(3)));
}

TEST_F(UnusedVfsTest, StayIfADefinitionNamesOne) {
  nameInDefinition();
  host.hypervisor.afterDefine = [this] { endOtherLease(); };
  EXPECT_THAT(host.execute(plan),
              Contains("PF 0000:01:00.0 (ens1f0np0) keeps its VFs: VF 3 (0000:01:00.4) is named by "
                       "domain hand0"));
  EXPECT_THAT(vfs(), testing::SizeIs(testing::Gt(3)));
}

TEST_F(UnusedVfsTest, StayIfLibvirtCannotListTheDomains) {
  host.hypervisor.afterDefine = [this] { endOtherLease(); };
  host.readDefinitions = []() -> Definitions { throw Error("libvirt has gone", ""); };
  EXPECT_THAT(host.execute(plan), Contains(EndsWith("cannot list the domains: libvirt has gone")));
  EXPECT_THAT(vfs(), testing::SizeIs(testing::Gt(3)));
  EXPECT_THAT(host.leases(), IsEmpty());
}

// The plan removes the VFs itself, and somebody defines a domain with one of them after it was
// made.
TEST_F(UnusedVfsTest, AreNotRemovedByThePlanIfADefinitionNamesOneMeanwhile) {
  endOtherLease();
  plan = host.detachPlan();
  nameInDefinition();
  try {
    host.execute(plan);
    ADD_FAILURE() << "not refused";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::refused);
    EXPECT_THAT(error.what(), HasSubstr("have changed since the plan was made: PF 0000:01:00.0 "
                                        "(ens1f0np0) keeps its VFs: VF 3"));
  }
  EXPECT_THAT(vfs(), testing::SizeIs(testing::Gt(3)));
  EXPECT_THAT(host.leases(), testing::SizeIs(2)) << "rolled back";
}

TEST_F(UnusedVfsTest, AreNotRemovedByRecoveryIfADefinitionNamesOneMeanwhile) {
  endOtherLease();
  plan = host.detachPlan();
  host.hypervisor.killAfterDefine = true;
  EXPECT_THROW(host.execute(plan), fake::Killed);
  host.hypervisor.killAfterDefine = false;
  nameInDefinition();
  EXPECT_THAT(host.recoverAll(),
              ElementsAre(HasSubstr("completed; PF 0000:01:00.0 (ens1f0np0) keeps its VFs: VF 3")));
  EXPECT_THAT(vfs(), testing::SizeIs(testing::Gt(3)));
  EXPECT_THAT(host.leases(), IsEmpty());
  EXPECT_THAT(host.recoverAll(), IsEmpty());
}

TEST_F(UnusedVfsTest, AreNotRemovedByThePlanIfLibvirtCannotListTheDomainsMeanwhile) {
  endOtherLease();
  plan = host.detachPlan();
  host.readDefinitions = []() -> Definitions { throw Error("libvirt has gone", ""); };
  try {
    host.execute(plan);
    ADD_FAILURE() << "not refused";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::refused);
    EXPECT_THAT(error.what(), HasSubstr("PF 0000:01:00.0 keeps its VFs: "));
    EXPECT_THAT(error.what(), EndsWith("the domains cannot be listed: libvirt has gone"));
    EXPECT_THAT(error.remedy(), HasSubstr("virsh list --all"));
  }
  EXPECT_THAT(vfs(), testing::SizeIs(testing::Gt(3)));
  EXPECT_THAT(host.leases(), testing::SizeIs(2)) << "rolled back";
  EXPECT_THAT(host.recoverAll(), IsEmpty());
}

TEST_F(UnusedVfsTest, AreNotRemovedByRecoveryUntilLibvirtListsTheDomains) {
  endOtherLease();
  plan = host.detachPlan();
  host.hypervisor.killAfterDefine = true;
  EXPECT_THROW(host.execute(plan), fake::Killed);
  host.hypervisor.killAfterDefine = false;
  const auto answering = host.readDefinitions;
  host.readDefinitions = []() -> Definitions { throw Error("libvirt has gone", ""); };
  EXPECT_THROW(host.recoverAll(), Error);
  EXPECT_THAT(vfs(), testing::SizeIs(testing::Gt(3)));
  host.readDefinitions = answering;
  EXPECT_THAT(host.recoverAll(), ElementsAre(EndsWith("completed")));
  EXPECT_THAT(vfs(), IsEmpty());
}

// Listing all domains for each of many operations would take quadratic time.
TEST_F(UnusedVfsTest, LibvirtListsTheDomainsOnceForManyOperations) {
  for (const unsigned count : {10U, 20U}) {
    interruptDetaches(count);
    int lists = 0;
    host.readDefinitions = [&lists] {
      ++lists;
      return Definitions{};
    };
    EXPECT_THAT(host.recoverAll(), testing::SizeIs(count));
    EXPECT_EQ(lists, 0) << "the PF has other leases";
  }
  EXPECT_THAT(vfs(), testing::SizeIs(testing::Gt(3)));
}

// `detach --keep` ends the last lease.
TEST_F(UnusedVfsTest, StayIfTheDomainKeepsItsDevices) {
  endOtherLease();
  const auto leases = openDatabase().leases();
  ASSERT_FALSE(leases.empty());
  plan.steps = {{EditDomain{plan.domain, {}, leases}, {EditDomain{plan.domain, leases}}, ""}};
  for (const Lease& lease : leases) {
    plan.steps.push_back(
        {DropLease{lease.domain, lease.entry, lease.generation, lease.pf}, {}, ""});
  }
  const auto count = vfs().size();
  host.execute(plan);
  EXPECT_THAT(vfs(), testing::SizeIs(count));
  EXPECT_THAT(openDatabase().leases(), IsEmpty());
}

TEST_F(UnusedVfsTest, AreRemovedByTheRecoveryOfTheDetach) {
  host.hypervisor.killAfterDefine = true;
  EXPECT_THROW(host.execute(plan), fake::Killed);
  host.hypervisor.killAfterDefine = false;
  endOtherLease();
  EXPECT_THAT(host.recoverAll(), ElementsAre(EndsWith("completed")));
  EXPECT_THAT(vfs(), IsEmpty());
}

// The old record of a renamed lease ends, but the device is leased all the time.
TEST_F(UnusedVfsTest, StayIfLeasesOnlyGetOtherNames) {
  endOtherLease();
  plan.kind = PlanKind::attach;
  plan.steps.clear();
  for (const Lease& before : openDatabase().leases()) {
    Lease renamed = before;
    renamed.entry += "-renamed";
    renamed.generation = openDatabase().nextGeneration();
    plan.steps.push_back({DropLease{before.domain, before.entry, before.generation, before.pf},
                          {RecordLease{before}},
                          ""});
    plan.steps.push_back(
        {RecordLease{renamed},
         {DropLease{renamed.domain, renamed.entry, renamed.generation, renamed.pf}},
         ""});
  }
  const auto count = vfs().size();
  host.execute(plan);
  EXPECT_THAT(vfs(), testing::SizeIs(count));
  EXPECT_EQ(openDatabase().leases().at(0).entry, "rail0-renamed");
}

/// The domain is attached again, to VFs that vfpass created for another domain.
class UnusedVfsAfterRollbackTest : public UnusedVfsTest {
 protected:
  UnusedVfsAfterRollbackTest() {
    host.execute(plan);
    plan = host.attachPlan();
  }
  void refuseToAttach() {
    host.hypervisor.refuseDefine = true;
    EXPECT_THROW(host.execute(plan), Error);
  }
};

TEST_F(UnusedVfsAfterRollbackTest, StayIfTheOtherLeaseRemains) {
  refuseToAttach();
  EXPECT_THAT(host.leases(), testing::SizeIs(1)) << "rolled back";
  EXPECT_THAT(vfs(), testing::SizeIs(testing::Gt(3)));
}

TEST_F(UnusedVfsAfterRollbackTest, AreRemovedIfTheOtherLeaseHasEndedMeanwhile) {
  endOtherLease();
  refuseToAttach();
  EXPECT_THAT(host.leases(), IsEmpty());
  EXPECT_THAT(vfs(), IsEmpty());
}

TEST_F(UnusedVfsAfterRollbackTest, StayIfSomebodyHasOneWithoutALease) {
  endOtherLease();
  vfs()[3].driver = "vfio-pci";
  refuseToAttach();
  EXPECT_THAT(host.leases(), IsEmpty());
  EXPECT_THAT(vfs(), testing::SizeIs(testing::Gt(3)));
}

TEST_F(UnusedVfsAfterRollbackTest, StayIfADefinitionNamesOne) {
  endOtherLease();
  nameInDefinition();
  refuseToAttach();
  EXPECT_THAT(host.leases(), IsEmpty());
  EXPECT_THAT(vfs(), testing::SizeIs(testing::Gt(3)));
}

TEST_F(UnusedVfsAfterRollbackTest, AreRemovedByRecovery) {
  host.hypervisor.killBeforeDefine = true;
  EXPECT_THROW(host.execute(plan), fake::Killed);
  endOtherLease();
  EXPECT_THAT(host.recoverAll(), ElementsAre(EndsWith("rolled back")));
  EXPECT_THAT(host.leases(), IsEmpty());
  EXPECT_THAT(vfs(), IsEmpty());
  EXPECT_THAT(host.recoverAll(), IsEmpty());
}

}  // namespace
}  // namespace vfpass::apply
