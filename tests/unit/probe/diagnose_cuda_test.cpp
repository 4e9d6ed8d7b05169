#include "gpu/gpu_inventory.hpp"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "fake_libcuda.hpp"

namespace vfpass::probe {
namespace {

PciFunction gpu(const std::string& driver = "nvidia", const std::string& above = "0000:00:02.0/") {
  PciFunction function;
  function.address = "0000:05:00.0";
  function.deviceClass = 0x030200;
  function.vendor = 0x10de;
  function.driver = driver;
  function.path = "/sys/devices/pci0000:00/" + above + "0000:05:00.0";
  return function;
}

GpuSurroundings sound() { return {{gpu()}, "580.65.06", true, {}}; }

TEST(DiagnoseCuda, StatusOfSoundGuest) {
  EXPECT_EQ(diagnoseCuda(802, sound()), CudaProblem::fabricNotReady);
  EXPECT_EQ(diagnoseCuda(803, sound()), CudaProblem::driverMismatch);
  EXPECT_EQ(diagnoseCuda(999, sound()), CudaProblem::unknown);
  EXPECT_EQ(diagnoseCuda(100, sound()), CudaProblem::noDevice);
  EXPECT_EQ(diagnoseCuda(101, sound()), CudaProblem::invalidDevice);
  EXPECT_EQ(diagnoseCuda(46, sound()), CudaProblem::deviceUnavailable);
  EXPECT_EQ(diagnoseCuda(3, sound()), CudaProblem::notInitialized);
  EXPECT_EQ(diagnoseCuda(35, sound()), CudaProblem::driverTooOld);
  EXPECT_EQ(diagnoseCuda(12345, sound()), CudaProblem::other);
}

TEST(DiagnoseCuda, TellsMissingLibraryFromMissingDriver) {
  EXPECT_EQ(diagnoseCuda(std::nullopt, sound()), CudaProblem::libraryMissing);
  EXPECT_EQ(diagnoseCuda(std::nullopt, {{gpu("")}, "", false, {}}), CudaProblem::driverMissing);
}

TEST(DiagnoseCuda, FindsKernelsPartOfAmbiguousStatus) {
  for (const int status : {3, 100, 304, 999}) {
    EXPECT_EQ(diagnoseCuda(status, {{}, "580", true, {}}), CudaProblem::noGpu);
    EXPECT_EQ(diagnoseCuda(status, {{gpu("")}, "", false, {}}), CudaProblem::moduleNotLoaded);
    EXPECT_EQ(diagnoseCuda(status, {{gpu("nouveau")}, "580", true, {}}), CudaProblem::notBound);
  }
}

TEST(DiagnoseCuda, FindsMissingUvm) {
  GpuSurroundings surroundings = sound();
  surroundings.uvm = false;
  EXPECT_EQ(diagnoseCuda(999, surroundings), CudaProblem::uvmMissing);
  EXPECT_EQ(diagnoseCuda(802, surroundings), CudaProblem::fabricNotReady);
}

TEST(DiagnoseCuda, FindsMigWithoutInstance) {
  GpuSurroundings surroundings = sound();
  surroundings.mig = {{"0000:05:00.0", true, 0}};
  EXPECT_EQ(diagnoseCuda(100, surroundings), CudaProblem::migWithoutInstance);
  surroundings.mig = {{"0000:05:00.0", true, 2}};
  EXPECT_EQ(diagnoseCuda(100, surroundings), CudaProblem::noDevice);
}

TEST(DiagnoseCuda, FindsGpuOnRootBus) {
  GpuSurroundings surroundings = sound();
  surroundings.gpus = {gpu("nvidia", "")};
  EXPECT_EQ(diagnoseCuda(3, surroundings), CudaProblem::onRootBus);
  EXPECT_EQ(diagnoseCuda(100, surroundings), CudaProblem::noDevice);
}

TEST(CudaProblem, CodesAreUniqueAndReadable) {
  for (int i = 0; i <= static_cast<int>(CudaProblem::other); ++i) {
    const auto problem = static_cast<CudaProblem>(i);
    EXPECT_EQ(parseCudaProblem(toString(problem)), problem);
    EXPECT_FALSE(remedyFor(problem).empty());
    EXPECT_FALSE(describe(problem).empty());
  }
  EXPECT_EQ(parseCudaProblem(""), std::nullopt);
}

TEST(GpuInventory, ReportsCodeAndRemedyOfFailedInitialization) {
  const FakeLibcuda fake(FakeLibcuda::Settings{{"FAKE_CUDA_INIT", "803"}});
  const auto libcuda = gpuInventory({gpu()}, sound(), fake.path()).at("libcuda");
  EXPECT_EQ(libcuda.at("found"), true);
  EXPECT_EQ(libcuda.at("status"), 803);
  EXPECT_EQ(libcuda.at("code"), "driver-mismatch");
  EXPECT_EQ(libcuda.at("remedy"), remedyFor(CudaProblem::driverMismatch));
}

TEST(GpuInventory, ReportsGpuWithoutGpuDirectRdmaAndMig) {
  const FakeLibcuda fake(
      FakeLibcuda::Settings{{"FAKE_CUDA_GPUS", "0000:05:00.0"}, {"FAKE_CUDA_116", "0"}});
  GpuSurroundings surroundings = sound();
  surroundings.mig = {{"00000000:05:00.0", true, 1}};
  const auto inventory = gpuInventory({gpu()}, surroundings, fake.path());
  const auto& device = inventory.at("devices").at(0);
  EXPECT_EQ(device.at("gpudirect_rdma_supported"), 0);
  EXPECT_EQ(device.at("mig").at("instances"), 1);
  EXPECT_FALSE(inventory.at("libcuda").contains("code"));
}

}  // namespace
}  // namespace vfpass::probe
