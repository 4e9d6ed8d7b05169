#include <gtest/gtest.h>

#include <filesystem>

#include "doctored_host.hpp"

namespace vfpass::doctor {
namespace {

class Gpu : public testing::Test, public DoctoredHost {
 protected:
  void opens(const std::string& process, const std::string& name, const std::string& device) const {
    file("proc/" + process + "/comm", name + "\n");
    std::filesystem::create_directories(tree.path() / "proc" / process / "fd");
    std::filesystem::create_symlink(device, tree.path() / "proc" / process / "fd" / "3");
  }
};

TEST_F(Gpu, MemoryIsBehindALarge64BitBar) {
  EXPECT_EQ(outcome("gpu-bar"), Outcome::notObservable);
  const std::string registers = "0x0000000090000000 0x0000000090ffffff 0x0000000000040200\n";
  file(gpu, "resource", registers + "0x0000030000000000 0x0000031fffffffff 0x000000000014220c\n");
  EXPECT_EQ(finding("gpu-bar").seen, "128 GiB, 64-bit");
  EXPECT_EQ(outcome("gpu-bar"), Outcome::passed);
  file(gpu, "resource", registers + "0x00000000a0000000 0x00000000afffffff 0x000000000014220c\n");
  EXPECT_EQ(finding("gpu-bar").seen, "256 MiB, 64-bit");
  EXPECT_EQ(outcome("gpu-bar"), Outcome::failed);
  file(gpu, "resource", registers + "0x00000000a0000000 0x00000000dfffffff 0x0000000000042208\n");
  EXPECT_EQ(finding("gpu-bar").seen, "1 GiB, 32-bit");
  file(gpu, "resource", registers + "0x0000000000000000 0x0000000000000000 0x0000000000000000\n");
  EXPECT_EQ(finding("gpu-bar").seen, "no prefetchable BAR has an address");
  file(gpu, "resource", "rubbish\n0x12\n0x 0x 0x\n");
  EXPECT_EQ(outcome("gpu-bar"), Outcome::failed);
}

TEST_F(Gpu, DriversThatLetGo) {
  EXPECT_EQ(outcome("gpu-driver"), Outcome::passed);
  function(gpu).driver = "vfio-pci";
  EXPECT_EQ(outcome("gpu-driver"), Outcome::passed);
  function(gpu).driver = "nouveau";
  EXPECT_THAT(finding("gpu-driver").remedy, testing::HasSubstr("blacklist nouveau"));
}

TEST_F(Gpu, WhoHoldsItIsNamed) {
  function(gpu).driver = "nvidia";
  EXPECT_EQ(outcome("gpu-driver"), Outcome::notObservable);  // a captured tree has no processes
  opens("812", "bash", "/dev/null");
  EXPECT_EQ(outcome("gpu-driver"), Outcome::passed);
  opens("813", "python3", "/dev/nvidiactl");
  EXPECT_EQ(outcome("gpu-driver"), Outcome::passed);
  opens("814", "nvidia-persiste", "/dev/nvidia2");
  const Finding found = finding("gpu-driver");
  EXPECT_EQ(found.seen, "nvidia-persiste (814)");
  EXPECT_EQ(found.remedy, "systemctl stop nvidia-persistenced");
  file("proc/driver/nvidia/gpus/0000:04:00.0/information", "Model: \t H100\nDevice Minor: \t 1\n");
  EXPECT_EQ(outcome("gpu-driver"), Outcome::passed);  // the other GPU's
  opens("815", "train", "/dev/nvidia1");
  EXPECT_EQ(finding("gpu-driver").remedy, "kill 815");
}

TEST_F(Gpu, TheConsole) {
  EXPECT_EQ(outcome("gpu-console"), Outcome::passed);
  file(gpu, "boot_vga", "1\n");
  EXPECT_EQ(outcome("gpu-console"), Outcome::failed);
}

TEST_F(Gpu, LeftoversOfNvPeerMem) {
  EXPECT_EQ(outcome("nv-peer-mem"), Outcome::passed);
  file("etc/modules-load.d/old.conf", "nv_peer_mem\n");
  EXPECT_EQ(finding("nv-peer-mem").subject, "/etc/modules-load.d/old.conf");
  tree.remove("etc/modules-load.d/old.conf");
  file("etc/modprobe.d/gpu.conf", "blacklist nv_peer_mem\n");
  EXPECT_EQ(outcome("nv-peer-mem"), Outcome::passed);
  file("etc/init.d/nv_peer_mem", "");
  EXPECT_EQ(outcome("nv-peer-mem"), Outcome::failed);
  file("sys/module/nv_peer_mem/refcnt", "0\n");
  EXPECT_EQ(finding("nv-peer-mem").seen, "the module is loaded");
}

TEST_F(Gpu, PeermemIsBuiltAfterOfed) {
  EXPECT_EQ(outcome("driver-order"), Outcome::waived);
  file("sys/module/nvidia_peermem/version", "580.95.05\n");
  file("sys/module/nvidia/version", "580.95.05\n");
  EXPECT_EQ(outcome("driver-order"), Outcome::notObservable);  // no OFED
  tree.file("sys/kernel/mm/memory_peers/other/version", "1\n");
  EXPECT_EQ(outcome("driver-order"), Outcome::failed);
  tree.file("sys/kernel/mm/memory_peers/nv_mem/version", "580.95.05\n");
  EXPECT_EQ(outcome("driver-order"), Outcome::passed);
  file("sys/module/nvidia/version", "570.1\n");
  EXPECT_EQ(finding("driver-order").seen, "nvidia_peermem 580.95.05, nvidia 570.1");
}

}  // namespace
}  // namespace vfpass::doctor
