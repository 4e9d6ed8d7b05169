#include "drivers/memory_canary.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include "hosts/sysfs_tree.hpp"
#include "simulated_kernel.hpp"

namespace vfpass::host {
namespace {

using testing::HasSubstr;
using Result = MemoryCheck::Result;

// Memory that keeps the pattern in some of its places.
class SimulatedMemory final : public DeviceMemory {
 public:
  PatternFound access(const MemoryPlaces& places, const std::string& pattern, bool write) override {
    ++accesses;
    last = places;
    if (write) {
      const bool isFirst = kept.empty();
      kept = pattern;
      return isFirst ? written : rewritten;
    }
    return kept == pattern ? afterwards : PatternFound::nowhere;
  }

  PatternFound written = PatternFound::everywhere;
  PatternFound afterwards = PatternFound::nowhere;
  PatternFound rewritten = PatternFound::everywhere;  ///< by a second pattern, after the reset
  int accesses = 0;
  MemoryPlaces last;
  std::string kept;
};

class MemoryCanaryTest : public testing::Test {
 protected:
  MemoryCanaryTest() {
    tree_.file(folder_ + "/resource",
               "0x00000000a0000000 0x00000000a0ffffff 0x0000000000040200\n"
               "0x0000004000000000 0x0000004fffffffff 0x000000000014220c\n");
    tree_.file(folder_ + "/power_state", "D0\n");
  }
  void SetUp() override {
#if !defined(__x86_64__)
    GTEST_SKIP() << "the check is for x86";
#endif
  }
  MemoryCheck check() {
    const Root root(tree_.path());
    const Canary canary = plantCanary(root, kernel_, memory_, gpu_, checks_);
    return findCanary(root, kernel_, memory_, canary);
  }

  hosts::SysfsTree tree_;
  std::string folder_ = tree_.function("0000:65:00.0", "0x030200");
  PciAddress gpu_{0, 0x65, 0, 0};
  SimulatedKernel kernel_{tree_};
  SimulatedMemory memory_;
  MemoryChecks checks_ = MemoryChecks::on;
};

TEST_F(MemoryCanaryTest, IsGoneAfterAResetThatErases) {
  EXPECT_EQ(check(), (MemoryCheck{Result::gone, ""}));
  EXPECT_EQ(memory_.last.bar, 1U);
  EXPECT_EQ(memory_.kept.size(), 1024U);
  for (const std::uint64_t offset : memory_.last.offsets) {
    EXPECT_EQ(offset % 4096, 0U);
    EXPECT_LT(offset, 0x1000000000U);
  }
}

TEST_F(MemoryCanaryTest, SurvivesInOnePlace) {
  memory_.afterwards = PatternFound::somewhere;
  EXPECT_EQ(check().result, Result::survived);
}

// A GPU whose memory controller nobody has initialized.
TEST_F(MemoryCanaryTest, IsNotCheckedWhereAWriteDoesNotReadBack) {
  for (const auto found : {PatternFound::nowhere, PatternFound::somewhere}) {
    memory_.written = found;
    memory_.accesses = 0;
    memory_.kept.clear();
    EXPECT_EQ(check(),
              (MemoryCheck{Result::notChecked, "its memory does not keep what is written to it"}));
    EXPECT_EQ(memory_.accesses, 1);
  }
  memory_.kept.clear();
  memory_.written = PatternFound::unreachable;
  EXPECT_THAT(check().reason, HasSubstr("cannot be mapped"));
}

TEST_F(MemoryCanaryTest, IsNotCheckedWithoutAnAnswerAfterTheReset) {
  memory_.afterwards = PatternFound::unreachable;
  EXPECT_THAT(check().reason, HasSubstr("does not answer after the reset"));
  memory_.kept.clear();
  memory_.afterwards = PatternFound::nowhere;
  memory_.rewritten = PatternFound::nowhere;  // reads return ones
  EXPECT_THAT(check().reason, HasSubstr("does not answer after the reset"));
}

TEST_F(MemoryCanaryTest, TouchesNothingWhileItIsOff) {
  checks_ = MemoryChecks::off;
  tree_.file(folder_ + "/power/control", "auto\n");
  EXPECT_EQ(check(), (MemoryCheck{Result::notChecked,
                                  "gpu-memory-check in host.yaml is false or not applied"}));
  EXPECT_EQ(memory_.accesses, 0);
  EXPECT_THAT(kernel_.log, testing::IsEmpty());
}

TEST_F(MemoryCanaryTest, MemoryThatIsShortDoesNotEndTheProcess) {
  tree_.file(folder_ + "/power/control", "auto\n");
  kernel_.exhausted = "control=auto";
  EXPECT_EQ(check().result, Result::gone);
  EXPECT_THAT(kernel_.log, testing::Contains("control=auto"));
}

// A GPU whose memory and configuration space are files.
class GuardedMemoryTest : public testing::Test {
 protected:
  GuardedMemoryTest() {
    tree_.file(folder_ + "/config", config_);
    tree_.file(folder_ + "/resource1", empty_);
  }
  PatternFound access(std::chrono::milliseconds timeout) {
    return GuardedMemory(tree_.path(), timeout)
        .access({{0, 0x65, 0, 0}, 1, {0, 4096}}, "patterns", true);
  }
  // What a file has once no child is left.
  std::string contentOf(const std::string& file) {
    while (::waitpid(-1, nullptr, 0) > 0) {
    }
    return tree_.content(folder_ + file);
  }

  hosts::SysfsTree tree_;
  std::string folder_ = tree_.function("0000:65:00.0", "0x030200");
  const std::string config_ = std::string(64, '\0');
  const std::string empty_ = std::string(8192, '\0');
};

TEST_F(GuardedMemoryTest, HasThePatternAndRestoresTheCommandRegister) {
  EXPECT_EQ(access(std::chrono::seconds(30)), PatternFound::everywhere);
  EXPECT_EQ(contentOf("/resource1").substr(4096, 8), "patterns");
  EXPECT_EQ(contentOf("/config"), config_);
}

TEST_F(GuardedMemoryTest, WritesNothingWhenItIsLate) {
  EXPECT_EQ(access(std::chrono::milliseconds(0)), PatternFound::unreachable);
  EXPECT_EQ(contentOf("/resource1"), empty_);
  EXPECT_EQ(contentOf("/config"), config_);
}

TEST_F(MemoryCanaryTest, TouchesNoMemoryThatMayBeInUseOrAsleep) {
  tree_.bind("0000:65:00.0", "nvidia");
  EXPECT_EQ(check().reason, "driver nvidia has it");
  tree_.remove(folder_ + "/driver");
  tree_.file(folder_ + "/power_state", "D3hot\n");
  EXPECT_EQ(check().reason, "it does not wake up");
  tree_.file(folder_ + "/power_state", "D0\n");
  tree_.file(folder_ + "/resource", "0x00000000a0000000 0x00000000a0ffffff 0x0000000000040200\n");
  EXPECT_EQ(check().reason, "it has no BAR for its memory");
  tree_.file(folder_ + "/class", "0x020000\n");
  EXPECT_EQ(check().reason, "it is not a GPU");
  EXPECT_EQ(memory_.accesses, 0);
}

// AMD's are processing accelerators.
TEST_F(MemoryCanaryTest, ChecksAcceleratorsLikeDisplays) {
  tree_.file(folder_ + "/class", "0x120000\n");
  tree_.file(folder_ + "/vendor", "0x1002\n");
  EXPECT_EQ(check(), (MemoryCheck{Result::gone, ""}));
}

}  // namespace
}  // namespace vfpass::host
