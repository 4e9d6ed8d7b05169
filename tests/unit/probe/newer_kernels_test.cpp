#include "system/guest_inventory.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "hosts/sysfs_tree.hpp"

namespace vfpass::probe {
namespace {

using Json = nlohmann::json;

class NewerKernelsTest : public testing::Test {
 protected:
  NewerKernelsTest() {
    run("6.8.0-51-generic");
    for (const char* module : {"mlx5_core", "mlx5_ib", "nvidia", "nvidia_peermem"}) {
      tree.file(std::string("sys/module/") + module + "/refcnt", "1\n");
    }
  }

  void run(const std::string& release) { tree.file("proc/sys/kernel/osrelease", release + "\n"); }
  void install(const std::string& release, const std::string& dep) {
    tree.file("boot/vmlinuz-" + release, "");
    tree.file("lib/modules/" + release + "/modules.dep", dep);
  }
  [[nodiscard]] Json read() const { return readNewerKernels(SysfsReader(tree.path())); }

  const std::string inbox =
      "kernel/drivers/net/mlx5_core.ko.zst:\nkernel/drivers/mlx5_ib.ko.zst: x\n";
  hosts::SysfsTree tree;
};

TEST_F(NewerKernelsTest, NamesModulesThatDkmsHasNotBuilt) {
  const std::string dkms = "updates/dkms/nvidia.ko.zst:\nupdates/dkms/nvidia-peermem.ko: y\n";
  install("6.8.0-51-generic", inbox + dkms);
  install("6.8.0-100-generic", inbox);
  install("6.8.0-9-generic", "");
  EXPECT_EQ(read(), Json::parse(R"([{"release": "6.8.0-100-generic",
                                     "missing": ["nvidia", "nvidia_peermem"]}])"));
  install("6.8.0-100-generic", inbox + dkms);
  EXPECT_EQ(read()[0].at("missing"), Json::array());
}

TEST_F(NewerKernelsTest, LeavesOutModulesThatNoListOfTheRunningKernelHas) {
  install("6.8.0-51-generic", inbox + "updates/dkms/nvidia-current.ko:\n");  // Debian's name
  install("6.8.0-100-generic", inbox);
  EXPECT_EQ(read()[0].at("missing"), Json::array());
}

TEST_F(NewerKernelsTest, ComparesTheNumbersOfReleases) {
  run("4.18.0-305.3.1.el8_4.x86_64");
  install("4.18.0-305.el8.x86_64", inbox);
  EXPECT_EQ(read(), Json::array()) << "it is older";
  install("4.18.0-348.el8.x86_64", inbox);
  EXPECT_EQ(read().size(), 1U);
}

TEST_F(NewerKernelsTest, BuiltInModulesAreThere) {
  install("6.9.0-1-generic", "x/nvidia.ko:\nx/nvidia-peermem.ko:\n");
  tree.file("lib/modules/6.9.0-1-generic/modules.builtin",
            "kernel/mlx5_core.ko\nkernel/mlx5_ib.ko\n");
  EXPECT_EQ(read()[0].at("missing"), Json::array());
}

TEST_F(NewerKernelsTest, LeavesOutOtherFlavoursAndRemovedKernels) {
  install("6.9.0-1-lowlatency", "");
  tree.file("lib/modules/6.9.0-1-generic/modules.dep", "");
  EXPECT_EQ(read(), Json::array());
  run("5.14.0-427.13.1.el9_4.x86_64");
  tree.file("lib/modules/5.14.0-503.el9_5.x86_64/vmlinuz", "");
  EXPECT_EQ(read(), Json::parse(R"([{"release": "5.14.0-503.el9_5.x86_64", "missing": null}])"))
      << "its list cannot be read";
}

TEST_F(NewerKernelsTest, Bounded) {
  for (int number = 0; number < 40; ++number) {
    install("6.9.0-" + std::to_string(number) + "-generic", inbox);
  }
  EXPECT_EQ(read().size(), 16U);
}

}  // namespace
}  // namespace vfpass::probe
