#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "two_card_attach.hpp"
#include "vfpass/topology/mirror.hpp"

namespace vfpass::plan {
namespace {

using testing::Contains;
using testing::Each;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

class MirrorPlacesTest : public TwoCardAttach {};

bool mirrored(const Lease& lease) { return lease.guest.isMirrored(); }

TEST_F(MirrorPlacesTest, AttachPlacesEachLeaseInTree) {
  map("rail0", "ens1f0np0");
  map("rail1", "ens2f0np0");
  const auto decision = decide();
  EXPECT_THAT(decision.objections, IsEmpty());
  ASSERT_THAT(decision.leases, SizeIs(2));
  EXPECT_TRUE(mirrored(decision.leases[0]) && mirrored(decision.leases[1]));
}

TEST_F(MirrorPlacesTest, NotesThatATeamedVfFollowsTheTreeOfThisHost) {
  map("rail0", "ens1f0np0");
  input.mapping.vfs[0].teamingWith = "net0";
  input.interfaces = {{"ua-net0", MacAddress{{2, 0, 0, 0, 0, 1}}, "virtio", "persistent"}};
  EXPECT_THAT(decide().objections, IsEmpty());
  EXPECT_THAT(decide().plan.notes,
              Contains("the place of rail0 in the guest follows this host's PCI tree: the guest "
                       "can migrate to a host with another tree only with `topology: flat` in the "
                       "mappings on both"));
  input.mapping.vfs[0].teamingWith.reset();
  EXPECT_THAT(decide().plan.notes, Not(Contains(HasSubstr("follows this host's PCI tree"))));
}

TEST_F(MirrorPlacesTest, AttachAgainChangesNothing) {
  map("rail0", "ens1f0np0");
  keep(decide(), false);
  const auto again = decide();
  EXPECT_EQ(again.leases[0].guest, input.leases[0].guest);
  EXPECT_THAT(again.plan.notes, Not(Contains(HasSubstr("tree"))));
}

TEST_F(MirrorPlacesTest, MirrorsFlatLeasesForNextStart) {
  map("rail0", "ens1f0np0");
  auto flat = decide();
  flat.leases[0].guest = {{0, 1, 0, 0}, RootPort{1, {0, 0, 2, 0}, false}, {}};
  keep(flat, false);
  const auto decision = decide();
  EXPECT_TRUE(mirrored(decision.leases[0]));
  EXPECT_THAT(decision.plan.steps, Not(IsEmpty()));
}

TEST_F(MirrorPlacesTest, RunningDomainKeepsFlatPlacesWithNote) {
  map("rail0", "ens1f0np0");
  auto flat = decide();
  flat.leases[0].guest = {{0, 1, 0, 0}, RootPort{1, {0, 0, 2, 0}, false}, {}};
  keep(flat, true);
  const auto decision = decide();
  EXPECT_EQ(decision.leases[0].guest, flat.leases[0].guest);
  EXPECT_THAT(decision.plan.notes, Contains(HasSubstr("`vfpass attach --config train0` now")));
}

TEST_F(MirrorPlacesTest, PluggedDeviceTakesFreePortWithHostDistance) {
  input.mapping.sparePorts = 1;
  map("rail0", "ens1f0np0");
  map("rail1", "ens1f0np0");
  map("rail2", "ens2f0np0");
  const auto before = decide();
  keep(before, true);
  map("rail3", "ens1f0np0");
  std::set<unsigned> used;
  for (const Lease& lease : before.leases) {
    used.insert(lease.guest.address.bus);
  }
  // A root port with a switch behind it is not free, either.
  for (const auto& controller : before.leases[0].guest.controllers) {
    used.insert(controller.address.bus);
  }
  // Free ports, the one on the root bus first.
  for (const auto& controller : before.leases[0].guest.controllers) {
    if (controller.hotplug && !used.contains(controller.index) &&
        controller.model != ControllerModel::upstreamPort) {
      auto path = before.leases[0].guest.controllers;
      std::erase_if(path,
                    [&](const GuestController& each) { return each.index > controller.index; });
      GuestPlacement place{{0, static_cast<std::uint8_t>(controller.index), 0, 0}, {}, path};
      const bool root = controller.model == ControllerModel::rootPort;
      input.placements.insert(root ? input.placements.begin() : input.placements.end(), place);
    }
  }
  ASSERT_THAT(input.placements, SizeIs(2));
  const auto decision = decide();
  ASSERT_THAT(decision.objections, IsEmpty());
  EXPECT_EQ(decision.leases[3].guest.address, input.placements[1].address);
  EXPECT_THAT(decision.plan.notes, Each(Not(HasSubstr("has another distance"))));
  input.placements.pop_back();
  EXPECT_THAT(decide().plan.notes, Contains(HasSubstr("rail3 has another distance to 2")));
}

TEST_F(MirrorPlacesTest, RefusesLibvirtOrQemuWithoutHotplugSwitch) {
  map("rail0", "ens1f0np0");
  for (const HypervisorVersions& old : {HypervisorVersions{Version{6, 2}, Version{5, 0}},
                                        HypervisorVersions{Version{6, 3}, Version{4, 2}}}) {
    input.versions = old;
    const auto decision = decide();
    ASSERT_THAT(decision.objections, SizeIs(1));
    EXPECT_EQ(decision.objections[0].code, ExitCode::badInput);
    EXPECT_THAT(decision.objections[0].message, HasSubstr("it requires libvirt 6.3 and QEMU 5.0"));
    EXPECT_THAT(decision.objections[0].remedy, HasSubstr("topology: flat"));
  }
  input.versions = {Version{6, 3}, std::nullopt};
  EXPECT_THAT(decide().objections, IsEmpty());
}

TEST_F(MirrorPlacesTest, RefusesMachinesWithoutPciExpress) {
  map("rail0", "ens1f0np0");
  input.machine->controllers[0].model = "pci-root";
  const auto decision = decide();
  ASSERT_THAT(decision.objections, SizeIs(1));
  EXPECT_EQ(decision.objections[0].code, ExitCode::badInput);
  EXPECT_THAT(decision.objections[0].remedy, HasSubstr("topology: flat"));
}

TEST_F(MirrorPlacesTest, FlatMappingReplacesMirroredPlaces) {
  map("rail0", "ens1f0np0");
  keep(decide(), false);
  input.mapping.topology = "flat";
  input.machine.reset();
  input.placements = {{{0, 9, 0, 0}, RootPort{9, {0, 0, 9, 0}, false}, {}}};
  const auto decision = decide();
  EXPECT_EQ(decision.leases[0].guest, input.placements[0]);
}

}  // namespace
}  // namespace vfpass::plan
