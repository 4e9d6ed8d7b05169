#include "vfpass/host/driver_modules.hpp"

#include <gtest/gtest.h>

#include "hosts/sysfs_tree.hpp"
#include "vfpass/host/pci_function.hpp"

namespace vfpass::host {
namespace {

constexpr const char* grace = "pci:v000010DEd00002342sv000010DEsd000016EBbc03sc02i00\n";
constexpr const char* hopper = "pci:v000010DEd00002330sv000010DEsd000016C1bc03sc02i00";
constexpr const char* aliases =
    "# Aliases extracted from modules themselves.\n"
    "alias pci:v000010DEd*sv*sd*bc03sc02i00* nvidia\n"
    "alias vfio_pci:v*d*sv*sd*bc*sc*i* vfio_pci\n"
    "alias vfio_pci:v000010DEd00002342sv*sd*bc*sc*i* nvgrace_gpu_vfio_pci\n"
    "alias vfio_pci:v000015B3d0000101Esv*sd*bc*sc*i* mlx5_vfio_pci\n"
    "alias vfio_pci:v000010DEd00002330sv000010DEsd*bc*sc*i* someones_own\n"
    "alias vfio_pci:\nalias vfio_pci:x\n";

TEST(VfioDriverMatch, SelectsMostSpecificAlias) {
  EXPECT_EQ(bestVfioDriver(grace, aliases), "nvgrace_gpu_vfio_pci");
}

TEST(VfioDriverMatch, SelectsVfioPciForOrdinaryDevicesAndUnknownDrivers) {
  EXPECT_EQ(bestVfioDriver(hopper, aliases), "vfio-pci");
  EXPECT_EQ(bestVfioDriver(grace, ""), "vfio-pci");
  EXPECT_EQ(bestVfioDriver("usb:v1D6Bp0002", aliases), "vfio-pci");
  EXPECT_EQ(bestVfioDriver("", aliases), "vfio-pci");
}

TEST(VfioDriverMatch, UsesAliasesOfRunningKernel) {
  const hosts::SysfsTree tree;
  const std::string folder = tree.function("0000:02:00.0", "0x030200");
  const auto driver = [&] { return readPciFunction(Root(tree.path()), {0, 2, 0, 0})->vfioDriver; };
  EXPECT_EQ(driver(), "vfio-pci");
  tree.file(folder + "/modalias", grace);
  tree.file("proc/sys/kernel/osrelease", "6.8.0-1-arm64\n");
  EXPECT_EQ(driver(), "vfio-pci");
  tree.file("lib/modules/6.8.0-1-arm64/modules.alias", aliases);
  EXPECT_EQ(driver(), "nvgrace_gpu_vfio_pci");
  tree.file("proc/sys/kernel/osrelease", "../../etc\n");
  EXPECT_EQ(driver(), "vfio-pci");
}

TEST(HasVfioDriver, IsLoadedOrHasAModule) {
  const hosts::SysfsTree tree;
  const auto has = [&](const char* driver) { return hasVfioDriver(Root(tree.path()), driver); };
  EXPECT_EQ(has("mlx5_vfio_pci"), std::nullopt) << "no modules.alias: not known";
  tree.file("proc/sys/kernel/osrelease", "6.12.1\n");
  tree.file("lib/modules/6.12.1/modules.alias", "alias vfio_pci:v*d*sv*sd*bc*sc*i* vfio_pci\n");
  EXPECT_EQ(has("mlx5_vfio_pci"), false);
  EXPECT_EQ(has("vfio-pci"), true);
  tree.file("lib/modules/6.12.1/modules.alias", aliases);
  EXPECT_EQ(has("mlx5_vfio_pci"), true);
  tree.file("lib/modules/6.12.1/modules.alias", "");
  tree.file("sys/bus/pci/drivers/mlx5_vfio_pci/bind", "");
  EXPECT_EQ(has("mlx5_vfio_pci"), true) << "built in, or loaded from elsewhere";
}

TEST(HasIommufd, IsTheKernelsOwnOrAModuleUntilVfioTells) {
  const hosts::SysfsTree tree;
  const auto has = [&] { return hasIommufd(Root(tree.path())); };
  EXPECT_EQ(has(), std::nullopt) << "no modules.dep: not known";
  tree.file("proc/sys/kernel/osrelease", "6.12.1\n");
  tree.file("lib/modules/6.12.1/modules.dep", "kernel/drivers/vfio/vfio.ko:\n");
  EXPECT_EQ(has(), false);
  tree.file("lib/modules/6.12.1/modules.dep",
            "kernel/drivers/vfio/vfio.ko.xz: kernel/drivers/iommu/iommufd/iommufd.ko.xz\n");
  EXPECT_EQ(has(), true);
  tree.file("lib/modules/6.12.1/modules.dep", "");
  tree.file("sys/class/misc/iommu/dev", "10:124\n");
  EXPECT_EQ(has(), true) << "built in";
  tree.file("sys/module/vfio/refcnt", "0\n");
  EXPECT_EQ(has(), std::nullopt) << "captured without /proc/devices";
  tree.file("proc/devices", "Character devices:\n  1 mem\n10 misc\n");
  EXPECT_EQ(has(), false) << "iommufd, but no devices for it";
  tree.file("proc/devices", "Character devices:\n  1 mem\n511 vfio-dev\n");
  EXPECT_EQ(has(), true);
}

}  // namespace
}  // namespace vfpass::host
