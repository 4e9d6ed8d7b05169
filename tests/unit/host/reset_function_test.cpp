#include "vfpass/host/function_reset.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "simulated_kernel.hpp"
#include "vfpass/host/pci_function.hpp"
#include "vfpass/host/system_kernel.hpp"

namespace vfpass::host {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class ResetFunctionsTest : public testing::Test {
 protected:
  ResetFunctionsTest() : root_(tree_.path()), kernel_(tree_) {
    for (const char* address : {"0000:01:00.1", "0000:01:00.2", "0000:01:00.3"}) {
      tree_.file(tree_.function(address) + "/reset", "");
    }
  }
  void reset(const std::vector<PciAddress>& functions) {
    std::vector<std::exception_ptr> failures;
    outcomes_ = resetFunctions(root_, kernel_, functions, std::chrono::milliseconds(50));
    for (const ResetOutcome& outcome : outcomes_) {
      failures.push_back(outcome.failure);
    }
    throwAny(failures);
  }
  std::string content(const std::string& address) {
    return tree_.content(tree_.folderOf(address) + "/reset");
  }

  hosts::SysfsTree tree_;
  Root root_;
  SimulatedKernel kernel_;
  std::vector<ResetOutcome> outcomes_;
  PciAddress first_{0, 1, 0, 1};
  PciAddress second_{0, 1, 0, 2};
  PciAddress missing_{0, 9, 0, 0};
};

TEST_F(ResetFunctionsTest, ResetsEachFunction) {
  reset({first_, second_});
  EXPECT_EQ(content("0000:01:00.1"), "1");
  EXPECT_EQ(content("0000:01:00.2"), "1");
  EXPECT_EQ(content("0000:01:00.3"), "");
}

TEST_F(ResetFunctionsTest, SkipsFunctionWithoutReset) {
  tree_.remove(tree_.folderOf("0000:01:00.1") + "/reset");
  reset({first_});
  EXPECT_THAT(kernel_.log, IsEmpty());
  EXPECT_FALSE(outcomes_.at(0).done);
  // An administrator has disabled them all; the file stays until the kernel finds the device again.
  tree_.file(tree_.folderOf("0000:01:00.2") + "/reset_method", "\n");
  kernel_.fileErrors["reset"] = ENOTTY;
  EXPECT_NO_THROW(reset({second_}));
  EXPECT_FALSE(outcomes_.at(0).done);
}

// Function 0 of a card without FLR: the kernel listed the method before it found the others.
TEST_F(ResetFunctionsTest, SkipsFunctionThatSharesTheOnlyBusToReset) {
  const PciAddress graphics{0, 2, 0, 0};
  const std::string folder = tree_.function("0000:02:00.0", "0x030000");
  tree_.file(folder + "/reset", "");
  tree_.file(folder + "/reset_method", "bus\n");
  kernel_.fileErrors["reset"] = ENOTTY;
  EXPECT_THROW(reset({graphics}), Error) << "it is alone, so it has not come back";
  tree_.function("0000:02:00.1", "0x040300");
  EXPECT_NO_THROW(reset({graphics}));
  EXPECT_THAT(outcomes_.at(0).methods, IsEmpty());
}

// The kernel's answer for a device that is gone or whose link does not come up (pci_dev_wait).
TEST_F(ResetFunctionsTest, DeviceThatDoesNotComeBackIsAFailure) {
  tree_.file(tree_.folderOf("0000:01:00.1") + "/reset_method", "flr bus\n");
  kernel_.fileErrors["reset"] = ENOTTY;
  for (const PciAddress& function : {first_, second_}) {  // that of a kernel before 5.15, too
    try {
      reset({function});
      ADD_FAILURE() << toString(function);
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), HasSubstr("the device did not come back"));
      EXPECT_THAT(error.remedy(), HasSubstr("dmesg"));
    }
  }
  reset({});
  EXPECT_THROW(reset({first_}), Error);
  EXPECT_THAT(outcomes_.at(0).methods, ElementsAre("flr", "bus"));
}

TEST_F(ResetFunctionsTest, NamesEveryFailedFunction) {
  kernel_.fileErrors["reset"] = EIO;
  try {
    reset({missing_, first_, second_});
    FAIL();
  } catch (const TimeoutError&) {
    FAIL() << "nothing hangs";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), AllOf(HasSubstr("0000:09:00.0: no such PCI device"),
                                    HasSubstr("0000:01:00.1"), HasSubstr("0000:01:00.2")));
  }
  EXPECT_THAT(kernel_.log, ElementsAre("reset=1", "reset=1"));
}

TEST_F(ResetFunctionsTest, ReportsMethodsAndOutcomeOfEachFunction) {
  tree_.file(tree_.function("0000:01:00.2") + "/reset_method", "flr bus\n");
  EXPECT_THROW(reset({missing_, second_}), Error);
  ASSERT_EQ(outcomes_.size(), 2U);
  EXPECT_TRUE(outcomes_[0].failure);
  EXPECT_FALSE(outcomes_[0].done);
  EXPECT_FALSE(outcomes_[1].failure);
  EXPECT_TRUE(outcomes_[1].done);
  EXPECT_THAT(outcomes_[1].methods, ElementsAre("flr", "bus"));
}

// A device that would have come back in time must not look like one that hangs.
TEST(SystemKernelTest, ResetsNothingWithoutTheTimeForIt) {
  const PciAddress none{0xffff, 0xff, 0x1f, 7};
  EXPECT_TRUE(SystemKernel("/").resetFunctions({{none}}, MemoryChecks::off).at(0).failure);
  Deadlines deadlines;
  deadlines.end = std::chrono::steady_clock::now() + deadlines.bind / 2;
  try {
    SystemKernel("/", deadlines).resetFunctions({{none}}, MemoryChecks::off);
    ADD_FAILURE() << "it was reset";
  } catch (const TimeoutError&) {
    ADD_FAILURE() << "nothing hangs";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("too little time is left for 1 reset"));
  }
}

TEST_F(ResetFunctionsTest, ThrowsTimeoutForHangingReset) {
  kernel_.hangs = "reset";
  EXPECT_THROW(reset({missing_, first_}), TimeoutError);
}

}  // namespace
}  // namespace vfpass::host
