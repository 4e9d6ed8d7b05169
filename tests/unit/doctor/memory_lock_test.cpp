#include <gtest/gtest.h>

#include "doctored_host.hpp"

namespace vfpass::doctor {
namespace {

class MemoryLock : public testing::Test, public DoctoredHost {
 protected:
  void daemon(const std::string& text) const { file("vfpass/libvirt/memory-lock", text + "\n"); }
  void guest(std::uint64_t gibibytes, bool viommu, std::optional<std::uint64_t> limit = {}) {
    requirements.oneVm = true;
    requirements.guest = GuestMemory{"a vm", gibibytes << 30U, limit, viommu, 0};
  }
};

TEST_F(MemoryLock, RequiresDaemonThatCanRaiseLimit) {
  EXPECT_EQ(outcome("memory-lock"), Outcome::notObservable);
  daemon("libvirtd raises");
  EXPECT_EQ(outcome("memory-lock"), Outcome::passed);
  daemon("virtqemud unlimited");
  EXPECT_EQ(outcome("memory-lock"), Outcome::passed);
  daemon("libvirtd 67108864");
  EXPECT_EQ(finding("memory-lock").seen, "no CAP_SYS_RESOURCE, and a limit of 64 MiB");
  EXPECT_EQ(outcome("memory-lock"), Outcome::failed);
  for (const char* garbage : {"", "libvirtd", "libvirtd x"}) {
    daemon(garbage);
    EXPECT_EQ(outcome("memory-lock"), Outcome::notObservable) << garbage;
  }
}

TEST_F(MemoryLock, RequiresSufficientHardLimit) {
  EXPECT_EQ(outcome("guest-memory-lock"), Outcome::waived);
  guest(4, false);
  EXPECT_EQ(finding("guest-memory-lock").seen, "none: libvirt allows 5120 MiB");
  guest(4, false, 5ULL << 30U);
  EXPECT_EQ(outcome("guest-memory-lock"), Outcome::passed);
  guest(4, false, 4ULL << 30U);
  EXPECT_EQ(finding("guest-memory-lock").remedy,
            "virsh memtune --config --hard-limit 5242880 'a vm'");
  EXPECT_EQ(outcome("guest-memory-lock"), Outcome::failed);
}

TEST_F(MemoryLock, CountsEveryDeviceBehindVirtualIommu) {
  guest(4, true, 12ULL << 30U);
  require({});
  requirements.functions.push_back(function(gpu).address);
  require({});
  EXPECT_EQ(finding("guest-memory-lock").expected, "no hard_limit, or at least 13312 MiB");
  EXPECT_EQ(outcome("guest-memory-lock"), Outcome::failed);
}

}  // namespace
}  // namespace vfpass::doctor
