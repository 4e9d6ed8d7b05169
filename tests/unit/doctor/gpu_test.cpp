#include <gtest/gtest.h>

#include <filesystem>

#include "doctored_host.hpp"

namespace vfpass::doctor {
namespace {

/// 4096 bytes with a Resizable BAR capability for one BAR, which offers these sizes; or with none.
std::string configWithResizableBar(std::optional<unsigned> sizes) {
  std::string config(4096, '\0');
  const auto word = [&](std::size_t at, unsigned value) {
    config[at] = static_cast<char>(value & 0xffU);
    config[at + 1] = static_cast<char>(value >> 8U & 0xffU);
  };
  word(0x100, sizes ? 0x0015 : 0x0001);
  word(0x102, 0x0001);
  word(0x104, sizes.value_or(0) & 0xffffU);
  word(0x106, sizes.value_or(0) >> 16U);
  word(0x108, 1U << 5U);
  return config;
}

class Gpu : public testing::Test, public DoctoredHost {
 protected:
  void opens(const std::string& process, const std::string& name, const std::string& device) const {
    file("proc/" + process + "/comm", name + "\n");
    std::filesystem::create_directories(tree.path() / "proc" / process / "fd");
    std::filesystem::create_symlink(device, tree.path() / "proc" / process / "fd" / "3");
  }
};

TEST_F(Gpu, RequiresLarge64BitBar) {
  EXPECT_EQ(outcome("gpu-bar"), Outcome::notObservable);
  const std::string registers = "0x0000000090000000 0x0000000090ffffff 0x0000000000040200\n";
  file(gpu, "resource", registers + "0x0000030000000000 0x0000031fffffffff 0x000000000014220c\n");
  EXPECT_EQ(finding("gpu-bar").seen, "128 GiB, 64-bit");
  EXPECT_EQ(outcome("gpu-bar"), Outcome::passed);
  file(gpu, "resource", registers + "0x00000000a0000000 0x00000000dfffffff 0x0000000000042208\n");
  EXPECT_EQ(finding("gpu-bar").seen, "1 GiB, 32-bit");
  file(gpu, "resource", registers + "0x0000000000000000 0x0000000000000000 0x0000000000000000\n");
  EXPECT_EQ(finding("gpu-bar").seen, "no prefetchable BAR has an address");
  file(gpu, "resource", "garbage\n0x12\n0x 0x 0x\n");
  EXPECT_EQ(outcome("gpu-bar"), Outcome::failed);
}

// A Tesla T4 has 256 MiB for good. Other GPUs have it only until the firmware resizes it.
TEST_F(Gpu, AcceptsSmallBarOfGpuThatHasNoLargerOne) {
  file(gpu, "resource", "0x00000000a0000000 0x00000000afffffff 0x000000000014220c\n");
  EXPECT_EQ(outcome("gpu-bar"), Outcome::notObservable);  // only the first 64 bytes are readable
  file(gpu, "config", configWithResizableBar(std::nullopt));
  EXPECT_EQ(outcome("gpu-bar"), Outcome::passed);
  EXPECT_THAT(finding("gpu-bar").seen, testing::StartsWith("256 MiB, 64-bit, all that"));
  file(gpu, "config", configWithResizableBar(0x1ff0));  // 1 to 256 MiB
  EXPECT_EQ(outcome("gpu-bar"), Outcome::passed);
  file(gpu, "config", configWithResizableBar(0x3fff0));  // up to 8 GiB
  EXPECT_EQ(outcome("gpu-bar"), Outcome::warning);
  EXPECT_EQ(finding("gpu-bar").seen, "256 MiB, 64-bit; the GPU offers 8 GiB");
  EXPECT_THAT(finding("gpu-bar").remedy, testing::HasSubstr("Resizable BAR"));
}

TEST_F(Gpu, ReportsUnsupportedDriver) {
  EXPECT_EQ(outcome("gpu-driver"), Outcome::passed);
  function(gpu).driver = "vfio-pci";
  EXPECT_EQ(outcome("gpu-driver"), Outcome::passed);
  function(gpu).driver = "nouveau";
  file("etc/os-release", "ID=fedora\n");
  EXPECT_EQ(finding("gpu-driver").remedy,
            "echo blacklist nouveau >> /etc/modprobe.d/vfpass-gpu.conf, then run dracut -f "
            "--regenerate-all and reboot");
  file("usr/lib/modprobe.d/nvidia.conf", "# blacklist nouveau\nblacklist nouveau-gl\n");
  EXPECT_THAT(finding("gpu-driver").remedy, testing::StartsWith("echo blacklist nouveau >> "));
  file("usr/lib/modprobe.d/nvidia.conf", "blacklist nouveau\n");
  EXPECT_EQ(finding("gpu-driver").remedy,
            "nouveau is blacklisted already in /usr/lib/modprobe.d/nvidia.conf: run dracut -f "
            "--regenerate-all and reboot");
}

TEST_F(Gpu, LeavesDriverOfHostsDisplayAlone) {
  function(gpu).driver = "amdgpu";
  function(gpu).vendor = 0x1002;
  function(gpu).device = 0x74a1;
  EXPECT_THAT(finding("gpu-driver").remedy, testing::HasSubstr("blacklist amdgpu"));
  const auto display = builder.function(FunctionRole::other, "0000:05:00.0", 0);  // integrated
  function(display).path = "0000:05:00.0";
  function(display).driver = "amdgpu";
  const std::string remedy = finding("gpu-driver").remedy;
  EXPECT_THAT(remedy, testing::Not(testing::HasSubstr("blacklist")));
  EXPECT_THAT(remedy, testing::HasSubstr("`softdep amdgpu pre: vfio-pci` and the ID 1002:74a1 in "
                                         "`options vfio-pci ids=`"));
  function(display).vendor = 0x1002;
  function(display).device = 0x74a1;
  EXPECT_THAT(finding("gpu-driver").remedy,
              testing::HasSubstr("set driver_override of 0000:04:00.0 to vfio-pci at boot"));
}

TEST_F(Gpu, LeavesDriverOfConsoleAndOfUnusedGpuAlone) {
  function(gpu).driver = "amdgpu";
  file(gpu, "boot_vga", "1\n");
  EXPECT_THAT(finding("gpu-driver").remedy, testing::Not(testing::HasSubstr("blacklist")));
  file(gpu, "boot_vga", "0\n");
  const auto other = builder.gpu("0000:05:00.0", 0);
  function(other).path = "0000:05:00.0";
  function(other).driver = "amdgpu";
  EXPECT_THAT(finding("gpu-driver").remedy, testing::HasSubstr("blacklist amdgpu"));
  requirements.functions = {function(gpu).address};
  EXPECT_THAT(finding("gpu-driver").remedy, testing::Not(testing::HasSubstr("blacklist")));
}

// An integrated GPU, such as GB10: no firmware setting gives it a BAR.
TEST_F(Gpu, WaivesBarOfIntegratedGpu) {
  file(gpu, "resource", "0x0000000050000000 0x0000000053ffffff 0x0000000000040200\n");
  EXPECT_THAT(finding("gpu-bar").remedy, testing::HasSubstr("Above 4G Decoding"));  // unreadable
  std::string header(64, '\0');
  file(gpu, "config", header);
  EXPECT_EQ(outcome("gpu-bar"), Outcome::waived);
  EXPECT_EQ(finding("gpu-bar").subject, "0000:04:00.0");
  EXPECT_EQ(finding("gpu-bar").remedy, "");
  header[0x14] = '\x0c';  // 64-bit, prefetchable, not placed
  file(gpu, "config", header);
  EXPECT_EQ(finding("gpu-bar").seen, "no prefetchable BAR has an address");
}

TEST_F(Gpu, OnlyWarnsOfOtherVendorsDriver) {
  function(gpu).vendor = 0x1002;
  for (const std::string driver : {"amdgpu", "xe", "i915"}) {
    function(gpu).driver = driver;
    EXPECT_EQ(outcome("gpu-driver"), Outcome::warning) << driver;
    EXPECT_THAT(finding("gpu-driver").remedy, testing::HasSubstr("blacklist " + driver));
  }
  function(gpu).driver = "radeon";
  EXPECT_EQ(outcome("gpu-driver"), Outcome::failed);
}

// Whose files they are is not known without the numbers of NVIDIA's driver.
TEST_F(Gpu, TakesNoUserOfNvidiasFilesForOneOfAnAmdGpu) {
  function(gpu).driver = "amdgpu";
  opens("1", "systemd", "/dev/null");
  opens("814", "train", "/dev/nvidia2");
  EXPECT_EQ(finding("gpu-driver").seen, "amdgpu, not in use");
  function(gpu).driver = "nvidia";
  EXPECT_EQ(finding("gpu-driver").seen, "train (pid 814)");
}

// Other vendors' drivers export their memory by dma-buf.
TEST_F(Gpu, WaivesPeermemChecksWithoutNvidiaGpu) {
  file("sys/module/nv_peer_mem/refcnt", "0\n");
  file("sys/module/nvidia_peermem/version", "580.95.05\n");
  EXPECT_EQ(outcome("nv-peer-mem"), Outcome::failed);
  for (const std::uint16_t vendor : std::initializer_list<std::uint16_t>{0x1002, 0x8086, 0x1da3}) {
    function(gpu).vendor = vendor;
    for (const std::string key : {"nv-peer-mem", "driver-order"}) {
      EXPECT_EQ(outcome(key), Outcome::waived) << key;
      EXPECT_THAT(finding(key).seen, testing::HasSubstr("dma-buf")) << key;
    }
  }
}

TEST_F(Gpu, RequiresGraceVfioDriverForGraceGpu) {
  function(gpu).driver = "vfio-pci";
  file(gpu, "modalias", "pci:v000010DEd00002342sv000010DEsd000016EBbc03sc02i00\n");
  file("proc/sys/kernel/osrelease", "6.8.0\n");
  file("lib/modules/6.8.0/modules.alias",
       "alias vfio_pci:v*d*sv*sd*bc*sc*i* vfio_pci\n"
       "alias vfio_pci:v000010DEd00002342sv*sd*bc*sc*i* nvgrace_gpu_vfio_pci\n");
  EXPECT_EQ(finding("gpu-driver").expected,
            "nvgrace_gpu_vfio_pci, the most specific VFIO driver for this GPU");
  EXPECT_EQ(outcome("gpu-driver"), Outcome::failed);
  function(gpu).driver = "nvgrace_gpu_vfio_pci";
  EXPECT_EQ(outcome("gpu-driver"), Outcome::passed);
}

TEST_F(Gpu, RequiresResetOfGpuOrItsBus) {
  EXPECT_EQ(outcome("gpu-reset"), Outcome::notObservable);
  file(gpu, "reset_method", "flr bus\n");
  EXPECT_EQ(finding("gpu-reset").seen, "flr, bus");
  file(gpu, "reset_method", "\n");
  EXPECT_EQ(finding("gpu-reset").seen, "no reset method");
  EXPECT_EQ(outcome("gpu-reset"), Outcome::failed);
  const auto audio = builder.function(FunctionRole::other, "0000:04:00.1", 0, gpuPort);
  function(audio).path = "0000:04:00.1";
  EXPECT_THAT(finding("gpu-reset").seen, testing::HasSubstr("shared with 0000:04:00.1"));
  requirements.functions = {function(audio).address};
  EXPECT_EQ(outcome("gpu-reset"), Outcome::passed);
}

TEST_F(Gpu, JudgesNvlinkOfMappings) {
  EXPECT_EQ(finding("gpu-nvlink").seen, "no NVSwitch among the PCI functions");
  const auto nvswitch = builder.function(FunctionRole::nvswitch, "0000:05:00.0", 0);
  function(nvswitch).path = "0000:05:00.0";
  EXPECT_THAT(finding("gpu-nvlink").seen, testing::HasSubstr("1 GPU and 1 NVSwitch; no mapping"));
  Mapping mapping;
  mapping.vm = "train0";
  mapping.functions = {{"gpu0", function(gpu).address, {"train0.yaml", 4, 5}}};
  requirements = requirementsOf(builder.topology, {mapping}, {}, false);
  EXPECT_EQ(outcome("gpu-nvlink"), Outcome::failed);
  EXPECT_EQ(finding("gpu-nvlink").subject, "train0");
  mapping.nvlink = NvlinkMode::disabled;
  requirements = requirementsOf(builder.topology, {mapping}, {}, false);
  EXPECT_EQ(outcome("gpu-nvlink"), Outcome::passed);
}

// The answers as a snapshot has them.
class GpuPartition : public Gpu {
 protected:
  GpuPartition() {
    const auto nvswitch = builder.function(FunctionRole::nvswitch, "0000:05:00.0", 0);
    function(nvswitch).path = "0000:05:00.0";
    function(nvswitch).driver = "nvidia-nvswitch";
    requirements = requirementsOf(builder.topology, {mappingOf("train0", 2)}, {}, false);
  }
  Mapping mappingOf(const std::string& vm, std::optional<unsigned> module) {
    Mapping mapping;
    mapping.vm = vm;
    mapping.nvlink = NvlinkMode::partition;
    mapping.functions = {{"gpu0", function(gpu).address, {vm + ".yaml", 4, 5}}};
    mapping.functions[0].nvlinkModule = module;
    return mapping;
  }
  Lease leaseOf(std::optional<unsigned> module) {
    Lease lease;
    lease.domainName = "train0";
    lease.entry = "gpu0";
    lease.pf = lease.device = function(gpu).address;
    LeasedFunction part;
    part.nvlinkModule = module;
    lease.part = part;
    return lease;
  }
  static std::string partition(unsigned id, bool active, const std::string& gpus, unsigned count) {
    return "{\"partitionId\": " + std::to_string(id) + ", \"isActive\": " + (active ? "1" : "0") +
           ", \"numGpus\": " + std::to_string(count) + ", \"gpuInfo\": [" + gpus + "]}";
  }
  static std::string listed(unsigned module) {
    return "{\"physicalId\": " + std::to_string(module) +
           ", \"pciBusId\": \"00000000:00:00.0\", \"uuid\": \"\"}";
  }
  void list(const std::string& partitions) const {
    file("vfpass/fabric-partitions", "{\"partitionInfo\": [" + partitions + "]}");
  }
  [[nodiscard]] Finding nvlink() const { return finding("gpu-nvlink"); }
};

TEST_F(GpuPartition, IsComparedWithTheFabricManagersList) {
  EXPECT_EQ(nvlink().outcome, Outcome::passed);
  EXPECT_THAT(nvlink().seen, testing::HasSubstr("fmpm is not installed here"));
  list(partition(8, true, listed(2), 1));
  EXPECT_EQ(nvlink().outcome, Outcome::passed);
  EXPECT_THAT(nvlink().seen, testing::HasSubstr("partition 8 of the fabric manager holds exactly"));
  EXPECT_THAT(nvlink().seen, testing::HasSubstr("each start activates it"));
  EXPECT_THAT(nvlink().seen, testing::Not(testing::HasSubstr("must")));
  list(partition(8, false, listed(2), 1) + "," +
       partition(3, true, listed(1) + "," + listed(2), 2));
  EXPECT_EQ(nvlink().outcome, Outcome::warning);
  EXPECT_THAT(nvlink().remedy, testing::HasSubstr("fmpm -d 3"));
  list(partition(7, false, listed(1), 1));
  EXPECT_EQ(nvlink().outcome, Outcome::failed);
  EXPECT_THAT(nvlink().remedy, testing::HasSubstr("partition 7 (module 1)"));
}

TEST_F(GpuPartition, BadAnswersOfTheFabricManagerAreAWarning) {
  list(partition(8, true, listed(2), 1) + "," + partition(3, true, listed(1) + "," + listed(2), 2));
  EXPECT_EQ(nvlink().outcome, Outcome::warning);
  EXPECT_THAT(nvlink().seen, testing::HasSubstr("both active and share the GPU"));
  file("vfpass/fabric-partitions", "Failed to connect to Fabric Manager instance.");
  EXPECT_THAT(nvlink().seen, testing::HasSubstr("Failed to connect to Fabric Manager instance."));
  EXPECT_THAT(nvlink().remedy, testing::HasSubstr("systemctl status nvidia-fabricmanager"));
}

TEST_F(GpuPartition, VersionsOfFabricManagerAndDriverAreCompared) {
  list(partition(8, true, listed(2), 1));
  file("vfpass/fabric-manager-version", "580.95.05");
  ASSERT_EQ(findings("gpu-nvlink").size(), 2U);
  EXPECT_THAT(findings("gpu-nvlink")[1].seen, testing::HasSubstr("the guest's driver has to be"));
  file("sys/module/nvidia/version", "580.82.07\n");
  EXPECT_EQ(findings("gpu-nvlink")[1].outcome, Outcome::warning);
  EXPECT_THAT(findings("gpu-nvlink")[1].remedy, testing::HasSubstr("in version 580.82.07"));
}

TEST_F(GpuPartition, VersionsAreComparedWithoutFmpm) {
  file("vfpass/fabric-manager-version", "580.95.05");
  file("sys/module/nvidia/version", "580.82.07\n");
  ASSERT_EQ(findings("gpu-nvlink").size(), 2U);
  EXPECT_THAT(findings("gpu-nvlink")[0].seen, testing::HasSubstr("fmpm is not installed here"));
  EXPECT_EQ(findings("gpu-nvlink")[1].outcome, Outcome::warning);
}

// The GPU is bound for its guest, so that the fabric manager does not know its address.
TEST_F(GpuPartition, IsFoundByTheModuleOfTheLease) {
  list(partition(8, false, listed(2), 1));
  requirements = requirementsOf(builder.topology, {mappingOf("train0", {})}, {}, false);
  EXPECT_EQ(nvlink().outcome, Outcome::notObservable);
  addLeases({leaseOf(2)}, requirements);
  EXPECT_EQ(nvlink().outcome, Outcome::passed);
}

TEST_F(GpuPartition, ALeaseWithoutAModuleActivatesNothing) {
  list(partition(8, false, listed(2), 1));
  addLeases({leaseOf({})}, requirements);
  EXPECT_EQ(nvlink().outcome, Outcome::warning);
  EXPECT_THAT(nvlink().seen, testing::HasSubstr("its lease has no module ID"));
  EXPECT_EQ(nvlink().remedy, "run `vfpass attach train0`");
}

TEST_F(GpuPartition, OneModuleOfTwoGpusFails) {
  const auto second = builder.gpu("0000:06:00.0", 0);
  function(second).path = "0000:06:00.0";
  Mapping other = mappingOf("train1", 2);
  other.functions[0].pci = function(second).address;
  requirements = requirementsOf(builder.topology, {mappingOf("train0", 2), other}, {}, false);
  const auto found = findings("gpu-nvlink");
  ASSERT_EQ(found.size(), 4U);
  EXPECT_EQ(found[0].outcome, Outcome::failed);
  EXPECT_EQ(found[0].subject, "train0");
  EXPECT_THAT(found[0].seen, testing::HasSubstr("has the module ID 2, as 0000:06:00.0 of train1"));
  EXPECT_EQ(found[2].outcome, Outcome::failed);
}

TEST_F(Gpu, NamesProcessesThatHoldGpu) {
  function(gpu).driver = "nvidia";
  EXPECT_EQ(outcome("gpu-driver"), Outcome::notObservable);  // a captured tree has no processes
  opens("1", "systemd", "/dev/null");
  EXPECT_EQ(outcome("gpu-driver"), Outcome::passed);
  opens("813", "python3", "/dev/nvidiactl");
  EXPECT_EQ(outcome("gpu-driver"), Outcome::passed);
  opens("814", "nvidia-persiste", "/dev/nvidia2");
  const Finding found = finding("gpu-driver");
  EXPECT_EQ(found.seen, "the persistence daemon nvidia-persiste (pid 814)");
  EXPECT_EQ(found.remedy, "systemctl stop nvidia-persistenced");
  file("proc/driver/nvidia/gpus/0000:04:00.0/information", "Model: \t H100\nDevice Minor: \t 1\n");
  EXPECT_EQ(outcome("gpu-driver"), Outcome::passed);  // the other GPU's
  opens("815", "train", "/dev/nvidia1");
  EXPECT_EQ(finding("gpu-driver").remedy, "wait until it ends, then try again");
  file("proc/815/cgroup", "0::/system.slice/ollama.service\n");
  EXPECT_EQ(finding("gpu-driver").remedy,
            "systemctl stop ollama.service, once nothing on this host needs it");
}

TEST_F(Gpu, ReportsConsoleGpu) {
  EXPECT_EQ(outcome("gpu-console"), Outcome::passed);
  file(gpu, "boot_vga", "1\n");
  EXPECT_EQ(outcome("gpu-console"), Outcome::failed);
}

TEST_F(Gpu, ReportsLeftoversOfNvPeerMem) {
  EXPECT_EQ(outcome("nv-peer-mem"), Outcome::passed);
  file("etc/modules-load.d/old.conf", "nv_peer_mem\n");
  EXPECT_EQ(finding("nv-peer-mem").subject, "/etc/modules-load.d/old.conf");
  EXPECT_EQ(finding("nv-peer-mem").remedy,
            "remove the line nv_peer_mem from /etc/modules-load.d/old.conf");
  tree.remove("etc/modules-load.d/old.conf");
  file("etc/modprobe.d/gpu.conf", "blacklist nv_peer_mem\n");
  EXPECT_EQ(outcome("nv-peer-mem"), Outcome::passed);
  file("etc/init.d/nv_peer_mem", "");
  EXPECT_EQ(finding("nv-peer-mem").remedy, "remove the package nvidia-peer-memory");
  file("etc/os-release", "ID=ubuntu\nID_LIKE=debian\n");
  EXPECT_EQ(finding("nv-peer-mem").remedy, "apt purge nvidia-peer-memory-dkms");
  EXPECT_EQ(outcome("nv-peer-mem"), Outcome::failed);
  file("sys/module/nv_peer_mem/refcnt", "0\n");
  EXPECT_EQ(finding("nv-peer-mem").seen, "the module is loaded");
}

TEST_F(Gpu, RequiresPeermemBuiltAfterOfed) {
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
