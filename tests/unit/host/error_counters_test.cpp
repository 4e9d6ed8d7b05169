#include "vfpass/host/error_counters.hpp"

#include <gtest/gtest.h>

#include "hosts/sysfs_tree.hpp"

namespace vfpass::host {
namespace {

class ErrorCountersTest : public testing::Test {
 protected:
  void write(const std::string& fatal, const std::string& other) {
    tree_.file(directory_ + "/aer_dev_fatal", fatal);
    tree_.file(directory_ + "/aer_dev_nonfatal", other);
  }
  std::optional<std::uint64_t> read() {
    return readUncorrectedErrors(Root(tree_.path()), PciAddress{0, 1, 0, 1});
  }

  hosts::SysfsTree tree_;
  std::string directory_ = tree_.function("0000:01:00.1");
};

TEST_F(ErrorCountersTest, AreTheSumsThatTheKernelMade) {
  write("Undefined 0\nDLP 1\nTLP 2\nTOTAL_ERR_FATAL 3\n",
        "Undefined 0\nUnsupReq 4\nTOTAL_ERR_NONFATAL 4\n");
  EXPECT_EQ(read(), 7U);
}

TEST_F(ErrorCountersTest, AreNotObservableWithoutBothSums) {
  EXPECT_FALSE(read());
  write("TOTAL_ERR_FATAL 3\n", "UnsupReq 4\n");
  EXPECT_FALSE(read());
  write("TOTAL_ERR_FATAL many\n", "TOTAL_ERR_NONFATAL 4\n");
  EXPECT_FALSE(read());
}

}  // namespace
}  // namespace vfpass::host
