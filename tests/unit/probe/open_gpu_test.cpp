#include "gpu/cuda_driver.hpp"

#include <gmock/gmock.h>

#include <cstdlib>
#include <fstream>

#include "fake/temporary_folder.hpp"
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

/// NVIDIA's file about a GPU, below a directory that stands for `/`.
class HideOtherGpus : public testing::Test {
 protected:
  HideOtherGpus() { ::unsetenv(variable); }
  ~HideOtherGpus() override { ::unsetenv(variable); }
  HideOtherGpus(const HideOtherGpus&) = delete;
  HideOtherGpus& operator=(const HideOtherGpus&) = delete;

  void describe(const std::string& address, const std::string& uuid) {
    const auto folder = root_.path() / "proc/driver/nvidia/gpus" / address;
    std::filesystem::create_directories(folder);
    std::ofstream(folder / "information")
        << "Model: \t\t NVIDIA H200\nIRQ:   \t\t 47\nGPU UUID: \t " << uuid
        << "\nBus Type: \t PCIe\n";
  }

  /// The variable after the call; empty if it is not set.
  [[nodiscard]] std::string visibleFor(const std::string& choice) const {
    hideOtherGpus(parseGpuChoice(choice), SysfsReader(root_.path()));
    const char* value = ::getenv(variable);
    return value == nullptr ? "" : value;
  }

  static constexpr const char* variable = "CUDA_VISIBLE_DEVICES";
  static constexpr const char* used = "GPU-3f1c86ad-2b40-11a0-9c4e-2f1b7c9d0e55";

 private:
  fake::TemporaryFolder root_;
};

TEST_F(HideOtherGpus, SelectsGpuByItsUuid) {
  describe("0000:05:00.0", used);
  describe("0000:06:00.0", "GPU-11111111-2222-3333-4444-555555555555");
  EXPECT_EQ(visibleFor("05:00.0"), used);
}

TEST_F(HideOtherGpus, ChangesNothingForIndexOrUnknownUuid) {
  describe("0000:05:00.0", used);
  describe("0000:06:00.0", "GPU-" + std::string(8, '?'));
  EXPECT_EQ(visibleFor("0"), "");
  EXPECT_EQ(visibleFor("0000:06:00.0"), "");
  EXPECT_EQ(visibleFor("0000:07:00.0"), "");
}

TEST_F(HideOtherGpus, KeepsChoiceOfTheUser) {
  describe("0000:05:00.0", used);
  ::setenv(variable, "1", 1);
  EXPECT_EQ(visibleFor("0000:05:00.0"), "1");
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
