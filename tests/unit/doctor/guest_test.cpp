#include <gtest/gtest.h>

#include "doctored_host.hpp"

namespace vfpass::doctor {
namespace {

class Guest : public testing::Test, public DoctoredHost {
 protected:
  void peers(std::optional<bool> possible, bool nextStart = false) {
    PeerMapping mapping;
    mapping.possible = possible;
    mapping.reason = "a reason";
    mapping.remedy = possible.value_or(false) ? "" : "a remedy";
    mapping.nextStart = nextStart;
    mapping.domainName = "train0";
    requirements.peers = {mapping};
  }
  void topologyFile(Outcome outcome) {
    requirements.mirrored = MirroredGuest{"train0", {"gpu0", "rail0"}};
    requirements.mirrored->topologyFile =
        Finding{"nccl-topology", "", outcome, "a file", "seen", "a remedy"};
  }
};

TEST_F(Guest, ReportsWhetherBarsAreMapped) {
  EXPECT_EQ(outcome("peer-mapping"), Outcome::waived);
  peers(true);
  EXPECT_EQ(outcome("peer-mapping"), Outcome::passed);
  EXPECT_EQ(finding("peer-mapping").seen, "the domain's XML: a reason");
  peers(false);
  EXPECT_EQ(outcome("peer-mapping"), Outcome::failed);
  EXPECT_EQ(finding("peer-mapping").remedy, "a remedy");
  peers(std::nullopt);
  EXPECT_EQ(outcome("peer-mapping"), Outcome::notObservable);
}

TEST_F(Guest, WarnsOfBarsThatTheNextStartDoesNotMap) {
  peers(false, true);
  EXPECT_EQ(outcome("peer-mapping"), Outcome::warning);
  EXPECT_EQ(finding("peer-mapping").subject, "train0");
  EXPECT_EQ(finding("peer-mapping").seen, "from the next start on: a reason");
  EXPECT_EQ(finding("peer-mapping").remedy, "a remedy");
  requirements.oneVm = true;
  requirements.peers.insert(requirements.peers.begin(), requirements.peers.front());
  requirements.peers.front().nextStart = false;
  requirements.peers.front().possible = true;
  const auto both = findings("peer-mapping");
  ASSERT_EQ(both.size(), 2U);
  EXPECT_EQ(both[0].outcome, Outcome::passed);
  EXPECT_EQ(both[1].outcome, Outcome::warning);
  EXPECT_EQ(both[1].subject, "") << "of the VM that doctor is asked about";
}

TEST_F(Guest, CannotStartWithIommufdThatKernelLacks) {
  EXPECT_EQ(outcome("iommufd"), Outcome::waived);
  requirements.iommufd = {{"train0", "iommu-backend: iommufd",
                           "set `iommu-backend: auto` in the mapping and attach it, or boot a "
                           "kernel that has iommufd"}};
  EXPECT_EQ(outcome("iommufd"), Outcome::notObservable);
  file("vfpass/modules/iommufd/state", "available\n");
  EXPECT_EQ(outcome("iommufd"), Outcome::passed);
  EXPECT_EQ(finding("iommufd").subject, "train0");
  file("vfpass/modules/iommufd/state", "absent\n");
  EXPECT_EQ(outcome("iommufd"), Outcome::failed);
  EXPECT_EQ(finding("iommufd").seen,
            "iommu-backend: iommufd, but the kernel has no iommufd: the domain cannot start");
  EXPECT_EQ(finding("iommufd").remedy, requirements.iommufd[0].remedy);
  requirements.oneVm = true;
  EXPECT_EQ(finding("iommufd").subject, "") << "of the VM that doctor is asked about";
}

TEST_F(Guest, ReportsMirroredGuestWithoutNcclTopology) {
  EXPECT_EQ(outcome("guest-nccl-topology"), Outcome::waived);
  topologyFile(Outcome::passed);
  EXPECT_EQ(outcome("guest-nccl-topology"), Outcome::passed);
  topologyFile(Outcome::warning);
  EXPECT_EQ(outcome("guest-nccl-topology"), Outcome::failed);
  EXPECT_EQ(finding("guest-nccl-topology").remedy, "a remedy");
  EXPECT_EQ(finding("guest-nccl-topology").seen,
            "seen; QEMU's switch ports (x3130) above gpu0, rail0 show 2.5 GT/s x1, and NCCL "
            "assumes 0.2 GB/s between switches");
  topologyFile(Outcome::waived);
  EXPECT_EQ(outcome("guest-nccl-topology"), Outcome::notObservable);
}

TEST_F(Guest, ReportsOutdatedNcclTopologyOfGuestThatNeedsNone) {
  topologyFile(Outcome::passed);
  requirements.mirrored->behindSwitches.clear();
  EXPECT_EQ(outcome("guest-nccl-topology"), Outcome::passed);
  requirements.mirrored->topologyFile->outcome = Outcome::warning;
  EXPECT_EQ(outcome("guest-nccl-topology"), Outcome::failed);
  EXPECT_EQ(finding("guest-nccl-topology").seen, "seen");
  EXPECT_EQ(finding("guest-nccl-topology").remedy, "a remedy");
  requirements.mirrored->topologyFile->outcome = Outcome::waived;
  EXPECT_EQ(outcome("guest-nccl-topology"), Outcome::notObservable) << "the agent is silent";
}

TEST_F(Guest, ReportsSwitchPortsOfStoppedMirroredGuest) {
  requirements.mirrored = MirroredGuest{"train 0", {"gpu0"}};
  EXPECT_EQ(outcome("guest-nccl-topology"), Outcome::notObservable);
  EXPECT_EQ(finding("guest-nccl-topology").seen,
            "the domain is not running; without a file: QEMU's switch ports (x3130) above gpu0 "
            "show 2.5 GT/s x1, and NCCL assumes 0.2 GB/s between switches");
  EXPECT_EQ(finding("guest-nccl-topology").remedy,
            "start the domain, then run `vfpass guest-setup 'train 0'`, which writes the file");
  requirements.mirrored->behindSwitches.clear();
  EXPECT_EQ(outcome("guest-nccl-topology"), Outcome::passed) << "root ports show enough";
}

TEST_F(Guest, ReportsEachUseOfConfidentialGuest) {
  EXPECT_EQ(outcome("confidential-guest"), Outcome::waived);
  requirements.confidential =
      ConfidentialGuest{"tdx",
                        {{"start", ConfidentialVerdict::possible, "a reason"},
                         {"DMA mappings", ConfidentialVerdict::limited, "a limit", "a remedy"},
                         {"RDMA", ConfidentialVerdict::unknown, "a doubt", "a remedy"},
                         {"GPUDirect RDMA", ConfidentialVerdict::impossible, "an obstacle",
                          "remove the launchSecurity element from the domain"}}};
  const auto found = findings("confidential-guest");
  ASSERT_EQ(found.size(), 4U);
  EXPECT_EQ(found[0].outcome, Outcome::passed);
  EXPECT_EQ(found[0].subject, "start");
  EXPECT_EQ(found[0].expected, "possible with <launchSecurity type='tdx'>");
  EXPECT_EQ(found[1].outcome, Outcome::warning);
  EXPECT_EQ(found[2].outcome, Outcome::notObservable);
  EXPECT_EQ(found[3].outcome, Outcome::failed);
  EXPECT_EQ(found[3].seen, "an obstacle");
  EXPECT_EQ(found[3].remedy, "remove the launchSecurity element from the domain");
  EXPECT_EQ(outcome("peer-mapping"), Outcome::waived);
  EXPECT_EQ(finding("peer-mapping").seen,
            "the guest maps no BARs of other devices, whatever VFIO maps: see confidential-guest");
}

}  // namespace
}  // namespace vfpass::doctor
