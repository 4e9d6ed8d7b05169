#include <gtest/gtest.h>

#include <filesystem>

#include "doctored_host.hpp"

namespace vfpass::doctor {
namespace {

class Libvirt : public testing::Test, public DoctoredHost {};

TEST_F(Libvirt, RequiresDaemon) {
  EXPECT_EQ(outcome("libvirt"), Outcome::notObservable);  // a tree without programs
  file("usr/sbin/cron", "");
  EXPECT_EQ(outcome("libvirt"), Outcome::failed);
  file("usr/sbin/libvirtd", "");
  EXPECT_EQ(finding("libvirt").seen, "libvirtd");
}

TEST_F(Libvirt, NamesQemuOfTheProcessor) {
  EXPECT_EQ(finding("qemu-version").remedy, "qemu-system-x86_64 --version");
  builder.topology.processors.architecture = "arm64";
  EXPECT_EQ(finding("qemu-version").remedy, "qemu-system-aarch64 --version");
}

TEST_F(Libvirt, RequiresHookLinkToProgram) {
  EXPECT_EQ(outcome("hook"), Outcome::notObservable);  // a tree without configuration
  file("etc/libvirt/qemu.conf", "");
  EXPECT_EQ(outcome("hook"), Outcome::failed);
  EXPECT_EQ(finding("hook").remedy, "vfpass hook install");
  const auto link = tree.path() / "etc/libvirt/hooks/qemu.d/vfpass";
  std::filesystem::create_directories(link.parent_path());
  std::filesystem::create_symlink("/usr/sbin/vfpass-qemu-hook", link);
  EXPECT_THAT(finding("hook").seen, testing::HasSubstr("does not exist"));
  file("usr/sbin/vfpass-qemu-hook", "");
  EXPECT_EQ(outcome("hook"), Outcome::passed);
  std::filesystem::remove(link);
  file("etc/libvirt/hooks/qemu.d/vfpass", "#!/bin/sh\n");
  EXPECT_EQ(finding("hook").seen, "a file, not a link");
}

TEST_F(Libvirt, RequiresDmaMappingLimit) {
  EXPECT_EQ(outcome("dma-mappings"), Outcome::waived);
  file("sys/module/vfio_iommu_type1/parameters/dma_entry_limit", "65535\n");
  EXPECT_EQ(outcome("dma-mappings"), Outcome::passed);
  file("sys/module/vfio_iommu_type1/parameters/dma_entry_limit", "128\n");
  EXPECT_EQ(outcome("dma-mappings"), Outcome::failed);
}

TEST_F(Libvirt, RequiresReservedOrTransparentHugepages) {
  EXPECT_EQ(outcome("hugepages"), Outcome::notObservable);
  file("sys/kernel/mm/transparent_hugepage/enabled", "always madvise [never]\n");
  EXPECT_EQ(outcome("hugepages"), Outcome::failed);
  file("sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages", "0\n");
  EXPECT_EQ(outcome("hugepages"), Outcome::failed);
  file("sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages", "64\n");
  EXPECT_EQ(finding("hugepages").seen, "64 of hugepages-1048576kB");
  file("sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages", "0\n");
  file("sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n");
  EXPECT_EQ(outcome("hugepages"), Outcome::passed);
}

}  // namespace
}  // namespace vfpass::doctor
