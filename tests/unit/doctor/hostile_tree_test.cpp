#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <set>

#include "doctored_host.hpp"

namespace vfpass::doctor {
namespace {

namespace fs = std::filesystem;

/// A tree with a file for every check.
class HostileTree : public testing::Test, public DoctoredHost {
 protected:
  HostileTree() {
    function(pf).vendor = 0x15b3;
    function(pf).totalVfs = 8;
    function(pf).link = {8000, 4};  // then the slot is read
    function(pf + 1).vendor = 0x15b3;
    function(pf + 1).netdevs.push_back({"ens1v0", 0, false, false});
    function(gpu).driver = "nvidia";
    requirements = requireEverything(builder.topology);
    requirements.guest = GuestMemory{};
    for (const auto& [name, content] : std::initializer_list<std::pair<const char*, const char*>>{
             {"proc/cpuinfo", "flags : vmx\n"},
             {"proc/cmdline", "intremap=off module.sig_enforce\n"},
             {"proc/sys/kernel/osrelease", "6.1.0\n"},
             {"proc/1/comm", "x\n"},
             {"proc/driver/nvidia/gpus/0000:04:00.0/information", "Device Minor: 0\n"},
             {"sys/kernel/iommu_groups/14/type", "identity\n"},
             {"sys/kernel/irq/1/chip_name", "IR-PCI-MSI\n"},
             {"sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages", "1\n"},
             {"sys/kernel/mm/transparent_hugepage/enabled", "[always]\n"},
             {"sys/kernel/security/lockdown", "[none]\n"},
             {"sys/module/kvm_intel/refcnt", "0\n"},
             {"sys/module/mlx5_core/version", "24.10\n"},
             {"sys/module/mlx5_core/taint", "OE\n"},
             {"sys/module/mlx5_ib/taint", "OE\n"},
             {"sys/module/nvidia/taint", "OE\n"},
             {"sys/module/nvidia/version", "580\n"},
             {"sys/module/nvidia_peermem/version", "580\n"},
             {"sys/module/vfio/parameters/enable_unsafe_noiommu_mode", "N\n"},
             {"sys/module/vfio_iommu_type1/parameters/allow_unsafe_interrupts", "N\n"},
             {"sys/module/vfio_iommu_type1/parameters/dma_entry_limit", "65535\n"},
             {"sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c", "12345"},
             {"var/lib/dkms/nvidia/580/source", ""},
             {"etc/os-release", "ID=debian\n"},
             {"etc/modprobe.d/a.conf", "options vfio enable_unsafe_noiommu_mode=1\n"},
             {"etc/modules-load.d/a.conf", "nv_peer_mem\n"},
             {"etc/netplan/a.yaml", "virtual-function-count: 4\n"},
             {"etc/systemd/network/a.link", "[SR-IOV]\n"},
             {"etc/systemd/system/openibd.service", "RefuseManualStop=no\n"},
             {"etc/NetworkManager/NetworkManager.conf", "no-auto-default=*\n"},
             {"etc/NetworkManager/system-connections/a", "total-vfs=4\n"},
             {"etc/udev/rules.d/a.rules", "sriov_numvfs\n"},
             {"usr/lib/udev/rules.d/b.rules", "physfn NM_UNMANAGED\n"},
             {"usr/sbin/libvirtd", ""},
             {"vfpass/dcb/net-mlx5_0", "8 1\n"},
             {"vfpass/devlink/0000:03:00.0/eswitch-mode", "legacy\n"},
             {"vfpass/devlink/0000:03:00.0/migratable", "yes\n"},
             {"vfpass/firmware/0000:03:00.0", "SRIOV_EN True(1) True(1)\n"},
             {"vfpass/libvirt/versions", "9.0.0 7.2.0\n"},
             {"vfpass/libvirt/memory-lock", "libvirtd raises\n"},
             {"vfpass/libvirt/hook-loaded", "x\n"},
             {"vfpass/modules/nvidia/signature", "none\n"},
             {"vfpass/modules/mlx5_vfio_pci/state", "installed\n"},
             {"vfpass/modules/iommufd/state", "absent\n"},
             {"vfpass/kernel-log", "mlx5_core 0000:03:00.0: health compromised\n"},
             {"sys/bus/pci/slots/1/address", "0000:03:00\n"},
             {"vfpass/vfio-users", "train0\n"}}) {
      file(name, content);
    }
    file(pf, "config", std::string(4096, '\0'));
    file(nicPort, "config", std::string(4096, '\0'));
    file(pf, "net/net-mlx5_0/mtu", "1500\n");
    file(pf, "net/net-mlx5_0/ecn/roce_np/enable/3", "1\n");
    file(pf, "net/net-mlx5_0/ecn/roce_rp/enable/3", "1\n");
    file(pf, "sriov_drivers_autoprobe", "1\n");
    file(gpu, "resource", "0x1 0x2 0x3\n");
    file(gpu, "boot_vga", "0\n");
  }

  /// Every file that the checks read, from a recording.
  [[nodiscard]] std::vector<std::string> readFiles() const {
    host::Recording recording(fs::canonical(tree.path()).string());
    host::Root root(tree.path());
    root.recordInto(recording);
    static_cast<void>(examine(root, builder.topology, requirements));
    std::vector<std::string> files;
    for (const auto& [path, entry] : recording.entries()) {
      if (entry.kind == host::RecordedEntry::Kind::file) {
        files.push_back(path);
      }
    }
    return files;
  }

  /// Every check must still report a finding, whatever the files contain.
  void expectAllFindings(const std::string& what) const {
    std::set<std::string> keys;
    const host::Root root(tree.path());
    for (const Diagnosis& each : examine(root, builder.topology, requirements)) {
      keys.insert(each.finding.key);
      EXPECT_FALSE(each.finding.seen.empty()) << what << ": " << each.finding.key;
    }
    EXPECT_GE(keys.size(), 40U) << what;
  }
};

TEST_F(HostileTree, SurvivesGarbageInEveryFile) {
  const auto files = readFiles();
  ASSERT_GE(files.size(), 35U);
  const std::vector<std::string> garbage{
      "", std::string(1U << 20U, 'x'), std::string(4096, '\0'), std::string(4096, '\xff'),
      "\x1b]0;owned\a\x1b[2J -1 18446744073709551616 0x 1.. ( )\n"};
  for (const std::string& name : files) {
    const auto path = tree.path() / name;
    fs::rename(path, tree.path() / "kept");
    for (const std::string& content : garbage) {
      file(name, content);
      expectAllFindings(name);
    }
    fs::remove(path);
    fs::rename(tree.path() / "kept", path);
  }
}

TEST_F(HostileTree, SurvivesDirectoriesLinksAndPipesInPlaceOfFiles) {
  const hosts::SysfsTree outside;
  outside.file("secret", "swordfish 9.0.0\n");
  for (const std::string& name : readFiles()) {
    const auto path = tree.path() / name;
    fs::rename(path, tree.path() / "kept");
    fs::create_directory(path);
    expectAllFindings(name);
    fs::remove(path);
    fs::create_symlink(outside.path() / "secret", path);
    const host::Root root(tree.path());
    for (const Diagnosis& each : examine(root, builder.topology, requirements)) {
      EXPECT_EQ(each.finding.seen.find("swordfish"), std::string::npos) << name;
    }
    fs::remove(path);
    fs::create_symlink(path, path);
    expectAllFindings(name);
    fs::remove(path);
    ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
    expectAllFindings(name);
    fs::remove(path);
    fs::rename(tree.path() / "kept", path);
  }
}

TEST_F(HostileTree, SurvivesTruncatedConfigurationSpace) {
  std::string config(4096, '\0');
  config[0x100] = 0x0d;  // ACS, whose next capability is itself
  config[0x102] = 0x01;
  config[0x103] = 0x10;
  for (const std::size_t length : {0U, 1U, 63U, 64U, 255U, 256U, 257U, 260U, 263U, 264U, 4095U}) {
    for (const std::size_t number : {pf, nicPort, gpuPort, rootPort}) {
      file(number, "config", config.substr(0, length));
    }
    expectAllFindings("cut at " + std::to_string(length));
  }
}

}  // namespace
}  // namespace vfpass::doctor
