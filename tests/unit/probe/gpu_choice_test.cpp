#include "gpu/gpu_choice.hpp"

#include <gmock/gmock.h>

#include "fake_libcuda.hpp"
#include "vfpass/error.hpp"

namespace vfpass::probe {
namespace {

using testing::AllOf;
using testing::HasSubstr;

const std::map<std::string, std::string> reversed{{"FAKE_CUDA_GPUS", "0000:06:00.0 0000:05:00.0"}};

TEST(GpuChoice, ReadsIndexAndPciAddress) {
  EXPECT_EQ(parseGpuChoice("0"), GpuChoice(0));
  EXPECT_EQ(parseGpuChoice("11"), GpuChoice(11));
  EXPECT_EQ(parseGpuChoice("0000:05:00.0"), GpuChoice(PciAddress{0, 5, 0, 0}));
  EXPECT_EQ(parseGpuChoice("0001:AB:1f.7"), GpuChoice(PciAddress{1, 0xab, 0x1f, 7}));
  EXPECT_EQ(parseGpuChoice("05:00.0"), GpuChoice(PciAddress{0, 5, 0, 0}));
}

TEST(GpuChoice, RefusesAnythingElse) {
  for (const char* text : {"", "-1", "1024", "0x1", "gpu0", "0000:05:00", "0000:05:20.0",
                           "0000:05:00.8", "0000:05:00.0 ", "99999999999999999999"}) {
    try {
      parseGpuChoice(text);
      ADD_FAILURE() << "accepted " << text;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::badInput);
      EXPECT_THAT(error.remedy(), AllOf(HasSubstr("index"), HasSubstr("0000:05:00.0")));
    }
  }
}

// CUDA's order differs from that of PCI (CUDA_DEVICE_ORDER=FASTEST_FIRST, its default).
TEST(FindGpu, SelectsByPciAddressWhateverTheOrder) {
  const FakeLibcuda fake(reversed);
  const CudaDriver driver(fake.path());
  EXPECT_EQ(findGpu(driver, parseGpuChoice("0000:05:00.0")), 1);
  EXPECT_EQ(findGpu(driver, parseGpuChoice("06:00.0")), 0);
  EXPECT_EQ(findGpu(driver, parseGpuChoice("1")), 1);
}

TEST(FindGpu, ListsTheGpusThatThereAre) {
  const FakeLibcuda fake(reversed);
  const CudaDriver driver(fake.path());
  for (const char* wanted : {"0000:07:00.0", "2"}) {
    try {
      findGpu(driver, parseGpuChoice(wanted));
      ADD_FAILURE() << "found " << wanted;
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), AllOf(HasSubstr(wanted), HasSubstr("0 (0000:06:00.0)"),
                                      HasSubstr("1 (0000:05:00.0)")));
    }
  }
}

TEST(FindGpu, ReportsThatCudaHasNone) {
  const FakeLibcuda fake;
  const CudaDriver driver(fake.path());
  EXPECT_THROW(findGpu(driver, 0), Error);
}

}  // namespace
}  // namespace vfpass::probe
