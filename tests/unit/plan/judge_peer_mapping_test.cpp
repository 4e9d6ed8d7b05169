#include "vfpass/plan/choose_backend.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace vfpass::plan {
namespace {

using testing::HasSubstr;

PeerMapping judged(VfioBackend backend, std::optional<Version> kernel, std::optional<Version> qemu,
                   bool containers = true) {
  PeerMapping mapping;
  mapping.backend = backend;
  judgePeerMapping(mapping, containers, kernel, qemu);
  return mapping;
}

TEST(JudgePeerMapping, ContainersMapBarsWithAnyKernel) {
  const PeerMapping mapping = judged(VfioBackend::container, {}, {});
  EXPECT_EQ(mapping.possible, true);
  EXPECT_EQ(mapping.remedy, "");
}

TEST(JudgePeerMapping, ContainersOfIommufdMapNoBars) {
  const PeerMapping mapping = judged(VfioBackend::container, Version{7, 2}, Version{11, 1}, false);
  EXPECT_EQ(mapping.possible, false);
  EXPECT_THAT(mapping.reason, HasSubstr("/dev/vfio/vfio is iommufd's"));
  EXPECT_THAT(mapping.remedy, HasSubstr("`iommu-backend: iommufd`"));
  EXPECT_EQ(judged(VfioBackend::iommufd, Version{7, 2}, Version{11, 1}, false).possible, true);
}

TEST(JudgePeerMapping, IommufdRequiresKernelAndQemuVersions) {
  EXPECT_EQ(judged(VfioBackend::iommufd, Version{6, 19}, Version{11, 0}).possible, true);
  EXPECT_EQ(judged(VfioBackend::iommufd, Version{7, 0}, Version{11, 2}).possible, true);
  const PeerMapping oldKernel = judged(VfioBackend::iommufd, Version{6, 18}, Version{11, 0});
  EXPECT_EQ(oldKernel.possible, false);
  EXPECT_THAT(oldKernel.reason, HasSubstr("this host has Linux 6.18 and QEMU 11.0"));
  EXPECT_THAT(oldKernel.remedy, HasSubstr("iommufd='yes'"));
  EXPECT_EQ(judged(VfioBackend::iommufd, Version{6, 19}, Version{10, 2}).possible, false);
}

TEST(JudgePeerMapping, UnknownVersionLeavesResultOpen) {
  EXPECT_EQ(judged(VfioBackend::iommufd, Version{6, 19}, {}).possible, std::nullopt);
  EXPECT_EQ(judged(VfioBackend::iommufd, {}, Version{11, 0}).possible, std::nullopt);
  EXPECT_EQ(judged(VfioBackend::iommufd, Version{6, 1}, {}).possible, false);
  EXPECT_THAT(judged(VfioBackend::iommufd, Version{6, 19}, {}).reason,
              HasSubstr("QEMU of unknown version"));
}

}  // namespace
}  // namespace vfpass::plan
