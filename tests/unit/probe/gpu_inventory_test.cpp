#include "gpu/gpu_inventory.hpp"

#include <gmock/gmock.h>

#include "fake_libcuda.hpp"

namespace vfpass::probe {
namespace {

const std::vector<std::string> fakeNvml{VFPASS_BINARY_DIR "/tests/fake/cuda/libnvidia-ml.so.1"};

TEST(MigState, TellsModesAndCountsInstances) {
  const FakeLibcuda fake(FakeLibcuda::Settings{
      {"FAKE_NVML_GPUS",
       "00000000:05:00.0=0 00000000:06:00.0=2 00000000:07:00.0=off 00000000:08:00.0=none"}});
  const auto states = readMigStates(fakeNvml);
  ASSERT_EQ(states.size(), 3U);
  EXPECT_EQ(states[0].pci, "00000000:05:00.0");
  EXPECT_TRUE(states[0].enabled);
  EXPECT_EQ(states[0].instances, 0U);
  EXPECT_TRUE(states[1].enabled);
  EXPECT_EQ(states[1].instances, 2U);
  EXPECT_EQ(states[2].pci, "00000000:07:00.0");
  EXPECT_FALSE(states[2].enabled);
}

TEST(MigState, IsEmptyWithoutNvml) {
  EXPECT_TRUE(readMigStates({"/nonexistent/libnvidia-ml.so.1"}).empty());
}

}  // namespace
}  // namespace vfpass::probe
