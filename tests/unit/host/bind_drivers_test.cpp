#include "drivers/driver_binding.hpp"

#include <gtest/gtest.h>

#include <barrier>
#include <mutex>
#include <set>

#include "hosts/sysfs_tree.hpp"
#include "vfpass/error.hpp"

namespace vfpass::host {
namespace {

class BindDriversTest : public testing::Test {
 protected:
  BindDriversTest() : root_(tree_.path()) { tree_.function("0000:01:00.0"); }

  BindDriver vf(std::uint8_t number) {
    const PciAddress address{0, 1, static_cast<std::uint8_t>(number / 8),
                             static_cast<std::uint8_t>(number % 8)};
    tree_.link(tree_.function(toString(address)) + "/physfn", tree_.folderOf("0000:01:00.0"));
    return {address, "vfio-pci", "vfio-pci"};
  }
  BindDriver gpu(std::uint8_t bus) {
    const PciAddress address{0, bus, 0, 0};
    tree_.function(toString(address), "0x030200");
    return {address, "vfio-pci", "vfio-pci"};
  }

  hosts::SysfsTree tree_;
  Root root_;
};

// Each binding waits for the other, so the test would time out if they ran in sequence.
TEST_F(BindDriversTest, BindsVfsInParallelWithOneWorkerEach) {
  std::barrier both(2);
  std::mutex mutex;
  std::set<std::size_t> workers;
  const auto failures =
      bindDrivers(root_, {vf(1), vf(2)}, [&](const BindDriver&, std::size_t worker) {
        both.arrive_and_wait();
        const std::lock_guard lock(mutex);
        workers.insert(worker);
      });
  EXPECT_EQ(failures, (std::vector<std::exception_ptr>{nullptr, nullptr}));
  EXPECT_EQ(workers, (std::set<std::size_t>{0, 1}));
}

TEST_F(BindDriversTest, BindsOtherFunctionsInOrderBeforeTheVfs) {
  std::vector<std::string> order;
  bindDrivers(root_, {gpu(0x41), vf(1), gpu(0x42)},
              [&](const BindDriver& action, std::size_t worker) {
                order.push_back(toString(action.function) + " by " + std::to_string(worker));
              });
  EXPECT_EQ(order, (std::vector<std::string>{"0000:41:00.0 by 0", "0000:42:00.0 by 0",
                                             "0000:01:00.1 by 0"}));
}

TEST_F(BindDriversTest, BindsAllVfsAlthoughOneFails) {
  std::vector<BindDriver> actions;
  for (std::uint8_t number = 1; number <= 3 * bindingWorkers; ++number) {
    actions.push_back(vf(number));
  }
  std::mutex mutex;
  std::multiset<PciAddress> bound;
  const auto failures = bindDrivers(root_, actions, [&](const BindDriver& action, std::size_t) {
    if (action.function == actions[4].function) {
      throw Error("the driver's probe failed");
    }
    const std::lock_guard lock(mutex);
    bound.insert(action.function);
  });
  EXPECT_EQ(bound.size(), actions.size() - 1);
  EXPECT_EQ(std::set<PciAddress>(bound.begin(), bound.end()).size(), actions.size() - 1);
  for (std::size_t i = 0; i < failures.size(); ++i) {
    EXPECT_EQ(failures[i] != nullptr, i == 4) << i;
  }
}

}  // namespace
}  // namespace vfpass::host
