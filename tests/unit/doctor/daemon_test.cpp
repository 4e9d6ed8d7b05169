#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "doctored_host.hpp"

namespace vfpass::doctor {
namespace {

class DaemonTest : public testing::Test, public DoctoredHost {
 protected:
  void versions(const std::string& text) const { file("vfpass/libvirt/versions", text + "\n"); }
  void link() const {
    const auto path = tree.path() / "etc/libvirt/hooks/qemu.d/vfpass";
    std::filesystem::create_directories(path.parent_path());
    std::filesystem::create_symlink("/usr/sbin/vfpass-qemu-hook", path);
  }
};

TEST_F(DaemonTest, NamesWhatASnapshotCouldNotAsk) {
  file("vfpass/libvirt/versions-not-observed", "libvirt did not answer then\n");
  EXPECT_EQ(outcome("qemu-version"), Outcome::notObservable);
  EXPECT_EQ(finding("qemu-version").seen, "libvirt did not answer then");
  EXPECT_THAT(finding("libvirt-version").seen, testing::StartsWith("libvirt did not answer then"));
}

TEST_F(DaemonTest, ReportsFeaturesOfVersions) {
  EXPECT_EQ(outcome("libvirt-version"), Outcome::notObservable);
  EXPECT_EQ(outcome("qemu-version"), Outcome::notObservable);
  versions("9.0.0 7.2.22");
  EXPECT_EQ(finding("libvirt-version").seen,
            "9.0.0: hooks in qemu.d, hostdev teaming, qemu:override (GPUDirect cliques, link "
            "speeds); without driver model mlx5_vfio_pci");
  EXPECT_EQ(finding("qemu-version").seen, "7.2.22: migrates only teamed VFs");
  versions("10.0.0 8.2.2");
  EXPECT_THAT(finding("libvirt-version").seen, testing::EndsWith("mlx5_vfio_pci"));
  EXPECT_EQ(finding("qemu-version").seen, "8.2.2: VFs can migrate");
  versions("6.0.0 4.2.1");
  EXPECT_EQ(outcome("libvirt-version"), Outcome::failed);
  for (const char* garbage : {"", "x", "9", "9. 7", "\x1b[31m"}) {
    versions(garbage);
    EXPECT_EQ(outcome("libvirt-version"), Outcome::notObservable) << garbage;
  }
}

TEST_F(DaemonTest, TeamingRequiresLibvirt71) {
  versions("7.0.0 5.2.0");
  EXPECT_EQ(outcome("libvirt-version"), Outcome::passed);
  require({});
  requirements.vfs[0].teaming = true;
  EXPECT_EQ(finding("libvirt-version").expected, "7.1 or later: train0, rail0 uses teaming");
  EXPECT_EQ(outcome("libvirt-version"), Outcome::failed);
}

TEST_F(DaemonTest, MigrationRequiresLibvirt10AndQemu81) {
  require({});
  versions("9.10.0 8.0.5");
  EXPECT_THAT(finding("libvirt-version").seen,
              testing::EndsWith("without driver model mlx5_vfio_pci"));
  EXPECT_EQ(finding("qemu-version").seen, "8.0.5: migrates only teamed VFs");
  EXPECT_EQ(outcome("libvirt-version"), Outcome::passed);
  EXPECT_EQ(outcome("qemu-version"), Outcome::passed);
  requirements.vfs[0].migration = true;
  EXPECT_EQ(outcome("libvirt-version"), Outcome::failed);
  EXPECT_EQ(finding("libvirt-version").expected,
            "10.0 or later: train0, rail0 has `migration: vfio`");
  EXPECT_EQ(outcome("qemu-version"), Outcome::failed);
  EXPECT_EQ(finding("qemu-version").expected, "8.1 or later: train0, rail0 has `migration: vfio`");
  versions("10.0.0 8.1.0");
  EXPECT_EQ(outcome("libvirt-version"), Outcome::passed);
  EXPECT_EQ(outcome("qemu-version"), Outcome::passed);
}

TEST_F(DaemonTest, ReadsVersionFromLibraryWithoutDaemon) {
  const auto path = tree.path() / "usr/lib/x86_64-linux-gnu/libvirt.so.0";
  std::filesystem::create_directories(path.parent_path());
  std::filesystem::create_symlink("libvirt.so.0.10002.3", path);
  EXPECT_THAT(finding("libvirt-version").seen, testing::StartsWith("10.2.3: "));
  std::filesystem::remove(path);
  std::filesystem::create_symlink("libvirt.so.0.x", path);
  EXPECT_EQ(outcome("libvirt-version"), Outcome::notObservable);
}

TEST_F(DaemonTest, RequiredUnitsAreEnabled) {
  EXPECT_EQ(finding("units").seen, "no mapping and no host.yaml needs one");
  requirements.units = {{"vfpass-verify.path", "why"}};
  EXPECT_EQ(finding("units").seen, "systemd does not run");
  file("run/systemd/system/x", "");
  EXPECT_EQ(outcome("units"), Outcome::failed);
  EXPECT_EQ(finding("units").subject, "vfpass-verify.path");
  EXPECT_EQ(finding("units").remedy, "systemctl enable --now vfpass-verify.path");
  file("etc/systemd/system/vfpass-verify.path", "an override does not enable it");
  EXPECT_EQ(outcome("units"), Outcome::failed);
  const auto wants = tree.path() / "etc/systemd/system/paths.target.wants";
  std::filesystem::create_directories(wants);
  std::filesystem::create_symlink("/usr/lib/systemd/system/vfpass-verify.path",
                                  wants / "vfpass-verify.path");
  EXPECT_EQ(outcome("units"), Outcome::passed);
}

TEST_F(DaemonTest, HookIsInstalledIfItsProgramExists) {
  const host::Root root(tree.path());
  EXPECT_FALSE(isHookInstalled(root));
  link();
  EXPECT_FALSE(isHookInstalled(root)) << "libvirt skips a dangling link";
  file("usr/sbin/vfpass-qemu-hook", "");
  EXPECT_TRUE(isHookInstalled(root));
}

TEST_F(DaemonTest, ReportsWhetherDaemonChecksHooks) {
  EXPECT_EQ(outcome("hook-loaded"), Outcome::waived);
  link();
  EXPECT_EQ(outcome("hook-loaded"), Outcome::notObservable);
  file("vfpass/libvirt/hook-loaded", "vfpass hook install reloaded the daemon\n");
  EXPECT_EQ(outcome("hook-loaded"), Outcome::passed);
  file("vfpass/libvirt/hook-loaded",
       "the daemon started before there was any hook, and vfpass has not reloaded it\n");
  EXPECT_EQ(finding("hook-loaded").remedy, "vfpass hook install");
  EXPECT_EQ(outcome("hook-loaded"), Outcome::failed);
  file("vfpass/libvirt/hook-loaded", "anything else\n");
  EXPECT_EQ(outcome("hook-loaded"), Outcome::notObservable);
}

// A tree in which this process is libvirtd, with a start time that the tests set.
class Knowledge : public testing::Test {
 protected:
  Knowledge() {
    const std::string self = std::to_string(::getpid());
    tree.file("run/libvirtd.pid", self + "\n");
    tree.file("proc/" + self + "/comm", "libvirtd\n");
    write(0);
  }
  // Sets the daemon's start time, in clock ticks since boot.
  void write(std::uint64_t ticks) const {
    tree.file("proc/" + std::to_string(::getpid()) + "/stat",
              "1 (lib) virt d) S 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 " +
                  std::to_string(ticks) + " 23 24\n");
  }
  static std::uint64_t inTicks(double seconds) {
    timespec now{};
    ::clock_gettime(CLOCK_BOOTTIME, &now);
    return static_cast<std::uint64_t>((static_cast<double>(now.tv_sec) + seconds) *
                                      static_cast<double>(::sysconf(_SC_CLK_TCK)));
  }
  [[nodiscard]] std::optional<HookKnowledge> knowledge() const {
    return hookKnowledge(host::Root(tree.path()), "run/vfpass");
  }

  hosts::SysfsTree tree;
};

TEST_F(Knowledge, ReportsNoDaemon) {
  tree.file("run/libvirtd.pid", "999999999\n");
  EXPECT_EQ(knowledge(), HookKnowledge::noDaemon);
}

TEST_F(Knowledge, ReportsHookInstalledBeforeStart) {
  tree.file("etc/libvirt/hooks/qemu.d/other", "#!/bin/sh\n");
  write(inTicks(60));
  EXPECT_EQ(knowledge(), HookKnowledge::startedAfter);
}

TEST_F(Knowledge, ReportsHookInstalledAfterStart) {
  write(0);
  const auto before = ::geteuid() == 0 ? std::optional(HookKnowledge::stale) : std::nullopt;
  EXPECT_EQ(knowledge(), before);  // no hook
  tree.file("etc/libvirt/hooks/qemu.d/vfpass", "#!/bin/sh\n");
  EXPECT_EQ(knowledge(), before);
  const std::string mark = daemonMark(host::Root(tree.path()), "libvirtd").value();
  EXPECT_EQ(mark, "libvirtd " + std::to_string(::getpid()) + " 0");
  tree.file("run/vfpass/hook-reloaded", "virtqemud 1 1\n" + mark + "\n");
  EXPECT_EQ(knowledge(), HookKnowledge::reloaded);
  write(1);  // another process with the same PID
  EXPECT_EQ(knowledge(), before);
}

}  // namespace
}  // namespace vfpass::doctor
