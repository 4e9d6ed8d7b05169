#include "vfpass/plan/plan_hook.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace vfpass::plan {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

class ArrivalTest : public testing::Test {
 protected:
  ArrivalTest() {
    there.domain = uuid;
    there.entry = "rail0";
    there.pf = *parsePciAddress("0000:3b:00.0");
    there.device = *parsePciAddress("0000:3b:00.2");
    there.guest.address = *parsePciAddress("0000:01:00.0");
    there.generation = 3;
    vfOf(there).settings.mac = MacAddress{};
    vfOf(there).teamingWith = "net0";
    here = there;
    here.pf = *parsePciAddress("0000:81:00.0");
    here.device = *parsePciAddress("0000:81:00.5");
    here.generation = 1;
    here.original.driver = "mlx5_core";
    here.managed = true;
    vfOf(here).index = 4;
    vfOf(here).settings.vlan = Vlan{100, 0, VlanProtocol::dot1q};
  }

  ArrivalDecision migrate() {
    return planArrival(Arrival::migration, uuid, "train0", {there}, {here});
  }
  std::string onlyObjection(const ArrivalDecision& decision) {
    EXPECT_THAT(decision.objections, SizeIs(1));
    EXPECT_THAT(decision.leases, IsEmpty()) << "nothing is replaced in the XML of a refused domain";
    return decision.objections.empty() ? "" : decision.objections[0].message;
  }

  static std::string remedyOf(const ArrivalDecision& decision) {
    return decision.objections.empty() ? "" : decision.objections.front().remedy;
  }

  Uuid uuid = *parseUuid("0f5e9a3c-1111-4222-8333-944455566677");
  Lease there;  ///< in the XML: of the other host, or of the time of the saved image
  Lease here;   ///< in the database of this host
};

TEST_F(ArrivalTest, ReplacesATeamedVfByTheLeaseOfThisHost) {
  const auto decision = migrate();
  EXPECT_THAT(decision.objections, IsEmpty());
  EXPECT_THAT(decision.leases, ElementsAre(here));
}

TEST_F(ArrivalTest, GivesASavedImageTheLeaseOfToday) {
  const auto decision = planArrival(Arrival::restore, uuid, "train0", {there}, {here});
  EXPECT_THAT(decision.objections, IsEmpty());
  EXPECT_THAT(decision.leases, ElementsAre(here));
}

TEST_F(ArrivalTest, LeavesXmlWithTheLeasesOfThisHost) {
  vfOf(here).teamingWith = std::nullopt;
  here.state = LeaseState::running;
  there = here;
  there.state = LeaseState::reserved;
  for (const auto arrival : {Arrival::restore, Arrival::migration}) {
    const auto decision = planArrival(arrival, uuid, "train0", {there}, {here});
    EXPECT_THAT(decision.objections, IsEmpty());
    EXPECT_THAT(decision.leases, IsEmpty());
  }
}

TEST_F(ArrivalTest, LeavesARestoreAfterALostDatabaseToPrepare) {
  const auto decision = planArrival(Arrival::restore, uuid, "train0", {there}, {});
  EXPECT_THAT(decision.objections, IsEmpty());
  EXPECT_THAT(decision.leases, IsEmpty());
}

TEST_F(ArrivalTest, RefusesAMigrationWithoutALeaseHere) {
  const auto decision = planArrival(Arrival::migration, uuid, "train0", {there}, {});
  EXPECT_EQ(onlyObjection(decision),
            "the arriving guest has rail0 (VF 0 of PF 0000:3b:00.0), for which this host has no "
            "lease");
  EXPECT_THAT(decision.objections[0].remedy, HasSubstr("run `vfpass attach train0` here"));
}

TEST_F(ArrivalTest, RefusesASavedImageWhoseVfIsGone) {
  here.entry = "rail1";
  here.persistent = false;
  const auto decision = planArrival(Arrival::restore, uuid, "train0", {there}, {here});
  EXPECT_THAT(onlyObjection(decision), HasSubstr("for which it has no lease any more"));
  EXPECT_THAT(decision.objections[0].remedy, HasSubstr("virsh managedsave-remove train0"));
}

TEST_F(ArrivalTest, RefusesAnEntryThatTheArrivingGuestLacks) {
  Lease added = here;
  added.entry = "rail1";
  const auto decision = planArrival(Arrival::restore, uuid, "train0", {there}, {here, added});
  EXPECT_EQ(onlyObjection(decision),
            "the saved image does not have rail1, which is attached to this domain");
  EXPECT_THAT(decision.objections[0].remedy,
              testing::StartsWith("remove rail1 from the mapping, and run `vfpass attach train0` "
                                  "before the start; or run `virsh managedsave-remove train0`"));
  EXPECT_EQ(planArrival(Arrival::migration, uuid, "train0", {there}, {here, added})
                .objections.front()
                .remedy,
            "remove rail1 from the mapping on this host, and run `vfpass attach train0` here "
            "before the migration, or attach it on the other host");
  added.persistent = false;
  EXPECT_THAT(planArrival(Arrival::restore, uuid, "train0", {there}, {here, added}).objections,
              IsEmpty())
      << "only the running domain had it, and it has stopped";
}

TEST_F(ArrivalTest, ReplacesOnlyTeamedVfs) {
  vfOf(there).teamingWith = vfOf(here).teamingWith = std::nullopt;
  EXPECT_THAT(onlyObjection(migrate()),
              HasSubstr("only a VF with `teaming:` or `migration: vfio` can be replaced"));
  there.part = here.part = LeasedFunction{};
  EXPECT_THAT(onlyObjection(migrate()),
              HasSubstr("only a VF with `teaming:` or `migration: vfio` can be replaced"));
}

TEST_F(ArrivalTest, ReplacesAVfThatMigratesByVfioOnBothHosts) {
  for (Lease* lease : {&there, &here}) {
    vfOf(*lease).teamingWith.reset();
    vfOf(*lease).migrationDriver = "mlx5_vfio_pci";
    vfOf(*lease).settings.msixVectors = 9;
  }
  EXPECT_THAT(migrate().leases, ElementsAre(here));
  vfOf(here).settings.msixVectors = 17;
  EXPECT_THAT(onlyObjection(migrate()), HasSubstr("notice: msix-vectors"));
  EXPECT_THAT(migrate().objections.front().remedy,
              HasSubstr("write `msix-vectors: 9` for rail0 in the mapping on this host"));
  vfOf(here).settings.msixVectors = 9;
  vfOf(here).settings.mac = MacAddress{{2, 0, 0, 0, 0, 1}};
  EXPECT_THAT(onlyObjection(migrate()), HasSubstr("notice: mac"));
  EXPECT_EQ(migrate().objections.front().remedy,
            "write `mac: \"" + toString(*vfOf(there).settings.mac) +
                "\"` for rail0 in the mapping on this host, and run `vfpass attach train0` here "
                "before the migration");
}

TEST_F(ArrivalTest, RefusesAVfThatMigratesOnOneHostAndIsTeamedOnTheOther) {
  vfOf(here).teamingWith.reset();
  vfOf(here).migrationDriver = "mlx5_vfio_pci";
  EXPECT_THAT(onlyObjection(migrate()), HasSubstr("notice: VFIO driver, teaming"));
  EXPECT_THAT(remedyOf(migrate()),
              HasSubstr("write `teaming: {with: net0}` for rail0 and remove `migration:` from "
                        "rail0 in the mapping on this host"));
  std::swap(here, there);
  EXPECT_THAT(onlyObjection(migrate()), HasSubstr("notice: VFIO driver, teaming"));
  EXPECT_THAT(remedyOf(migrate()),
              HasSubstr("write `migration: vfio` for rail0 and remove `teaming:` from rail0 in "
                        "the mapping on this host"));
}

TEST_F(ArrivalTest, RefusesAVfThatCanMoveOnOnlyOneHost) {
  vfOf(here).teamingWith.reset();
  vfOf(here).settings.mac = MacAddress{{2, 0, 0, 0, 0, 1}};
  EXPECT_THAT(onlyObjection(migrate()), HasSubstr("can be replaced"));
  EXPECT_EQ(remedyOf(migrate()),
            "write `teaming: {with: net0}` for rail0 in the mapping on this host, and run `vfpass "
            "attach train0` here before the migration");
  std::swap(here, there);
  EXPECT_THAT(remedyOf(migrate()), HasSubstr("with the XML of the other one"))
      << "no mapping here makes the guest's VF movable";
}

TEST_F(ArrivalTest, NamesTheKeysThatGiveTheVfTheFormAndPlaceOfTheGuests) {
  vfOf(there).interfaceForm = true;
  EXPECT_THAT(remedyOf(migrate()),
              HasSubstr("write `interface: true` for rail0 in the mapping on this host"));
  std::swap(here, there);
  EXPECT_THAT(remedyOf(migrate()), HasSubstr("write `interface: false` for rail0"));
  vfOf(here).interfaceForm = false;
  here.guest.controllers.resize(1);
  here.guest.address.bus = 3;
  EXPECT_THAT(onlyObjection(migrate()),
              HasSubstr("guest address (0000:01:00.0, here 0000:03:00.0 in a mirrored tree)"));
  EXPECT_EQ(remedyOf(migrate()),
            "write `topology: flat` in the mapping on this host, and run `vfpass attach train0` "
            "here before the migration");
  EXPECT_THAT(remedyOf(planArrival(Arrival::restore, uuid, "train0", {there}, {here})),
              HasSubstr("write `topology: flat` in the mapping, and run `vfpass attach train0` "
                        "before the start; or run `virsh managedsave-remove train0`"));
  std::swap(here, there);
  EXPECT_THAT(remedyOf(migrate()),
              HasSubstr("write `topology: flat` in the mappings on both hosts; then, while the VM "
                        "is shut off"));
}

TEST_F(ArrivalTest, ReplacesSettingsThatBindTheGuestToTheOtherHost) {
  Lease second = here;
  second.entry = "rail1";
  there.edits = {{"memory-placement", EditPlace::numatune, {"<memory nodeset='0'/>"}},
                 {"cpu-model", EditPlace::cpu, {"<cache/>"}}};
  second.edits = {{"memory-placement", EditPlace::numatune, {"<memory nodeset='1'/>"}},
                  {"cpu-model", EditPlace::cpu, {"<cache/>"}}};
  Lease secondThere = second;
  secondThere.edits.clear();
  const auto decide = [&] {
    return planArrival(Arrival::migration, uuid, "train0", {there, secondThere}, {here, second});
  };
  EXPECT_THAT(decide().objections, IsEmpty());
  EXPECT_THAT(decide().leases, ElementsAre(here, second)) << "they are on the other lease";
  second.edits.pop_back();
  EXPECT_EQ(onlyObjection(decide()),
            "the arriving guest has other domain settings than its leases on this host, which "
            "the guest would notice: cpu-model");
}

TEST_F(ArrivalTest, RefusesWhatTheGuestWouldNotice) {
  const auto termOf = [&](auto change) {
    const Lease kept = here;
    change(here);
    const std::string message = onlyObjection(migrate());
    here = kept;
    return message;
  };
  EXPECT_THAT(termOf([](Lease& each) {
                vfOf(each).settings.mac = MacAddress{{2, 0, 0, 0, 0, 1}};
              }),
              HasSubstr("its lease on this host differs in what the guest would notice: mac"));
  vfOf(here).settings.mac = MacAddress{{2, 0, 0, 0, 0, 1}};
  EXPECT_THAT(migrate().objections.front().remedy, HasSubstr("with the XML of the other one"))
      << "a teamed VF has its standby's MAC";
  vfOf(here).settings.mac = vfOf(there).settings.mac;
  EXPECT_THAT(termOf([](Lease& each) { each.guest.address.bus = 9; }),
              HasSubstr("notice: guest address"));
  EXPECT_THAT(termOf([](Lease& each) { vfOf(each).teamingWith = "net1"; }),
              HasSubstr("notice: teaming"));
  EXPECT_THAT(termOf([](Lease& each) { vfOf(each).infiniband = true; }),
              HasSubstr("notice: link layer"));
  EXPECT_THAT(termOf([](Lease& each) { vfOf(each).interfaceForm = true; }),
              HasSubstr("notice: form"));
  EXPECT_THAT(termOf([](Lease& each) { each.adoptedElement = "<hostdev/>"; }),
              HasSubstr("notice: other terms"));
}

TEST_F(ArrivalTest, ReplacesAllLeasesIfOneDiffers) {
  Lease same = here;
  same.entry = "rail1";
  const auto decision =
      planArrival(Arrival::migration, uuid, "train0", {there, same}, {same, here});
  EXPECT_THAT(decision.leases, ElementsAre(here, same));
}

TEST_F(ArrivalTest, RefusesCopiedMetadata) {
  there.domain = *parseUuid("ffffffff-1111-4222-8333-944455566677");
  EXPECT_THAT(onlyObjection(migrate()), HasSubstr("the XML was copied"));
}

}  // namespace
}  // namespace vfpass::plan
