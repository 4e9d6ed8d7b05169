#include "read_pci_function.hpp"

#include <gtest/gtest.h>

#include "hosts/topology_builder.hpp"

namespace vfpass::inventory {
namespace {

struct Machine : hosts::TopologyBuilder {
  std::size_t bridge = hostBridge("pci0000:00", 0);

  std::size_t display(const std::string& address, std::uint16_t vendor,
                      std::optional<std::size_t> parent, std::uint32_t classCode = 0x030000) {
    const auto number = gpu(address, bridge, parent);
    topology.functions[number].vendor = vendor;
    topology.functions[number].classCode = classCode;
    return number;
  }
  std::size_t beside(const std::string& address, std::uint16_t vendor, std::size_t parent) {
    const auto number = function(FunctionRole::other, address, bridge, parent);
    topology.functions[number].vendor = vendor;
    return number;
  }
  FunctionRole roleAfterwards(std::size_t number) {
    dropIntegratedGraphics(topology);
    return topology.functions[number].role;
  }
};

TEST(IntegratedGraphics, IntelGraphicsOfProcessorAreNoGpu) {
  Machine machine;
  EXPECT_EQ(machine.roleAfterwards(machine.display("0000:00:02.0", 0x8086, {})),
            FunctionRole::other);
}

TEST(IntegratedGraphics, IntelCardBehindPortIsGpu) {
  Machine machine;
  const auto port = machine.function(FunctionRole::rootPort, "0000:00:01.0", machine.bridge);
  EXPECT_EQ(machine.roleAfterwards(machine.display("0000:01:02.0", 0x8086, port)),
            FunctionRole::gpu);
}

// As on a Ryzen: graphics, their audio function, the security processor.
TEST(IntegratedGraphics, AmdGraphicsOfProcessorAreNoGpu) {
  Machine machine;
  const auto port = machine.function(FunctionRole::rootPort, "0000:00:08.1", machine.bridge);
  const auto display = machine.display("0000:0e:00.0", 0x1002, port);
  machine.beside("0000:0e:00.1", 0x1002, port);
  machine.beside("0000:0e:00.2", 0x1022, port);
  EXPECT_EQ(machine.roleAfterwards(display), FunctionRole::other);
}

// As on a Kaveri: no function of the processor shares the slot.
TEST(IntegratedGraphics, AmdGraphicsOnRootBusAreNoGpu) {
  Machine machine;
  EXPECT_EQ(machine.roleAfterwards(machine.display("0000:00:01.0", 0x1002, {})),
            FunctionRole::other);
}

TEST(IntegratedGraphics, AmdCardWithAudioAndUsbIsGpu) {
  Machine machine;
  const auto port = machine.function(FunctionRole::rootPort, "0000:00:08.1", machine.bridge);
  const auto display = machine.display("0000:0e:00.0", 0x1002, port);
  machine.beside("0000:0e:00.1", 0x1002, port);
  machine.beside("0000:0f:00.0", 0x1022, port);  // another slot
  EXPECT_EQ(machine.roleAfterwards(display), FunctionRole::gpu);
}

TEST(IntegratedGraphics, AcceleratorBesideProcessorIsGpu) {
  Machine machine;
  const auto port = machine.function(FunctionRole::rootPort, "0000:00:08.1", machine.bridge);
  const auto accelerator = machine.display("0000:0e:00.0", 0x1002, port, 0x120000);
  machine.beside("0000:0e:00.2", 0x1022, port);
  EXPECT_EQ(machine.roleAfterwards(accelerator), FunctionRole::gpu);
}

TEST(IntegratedGraphics, IntelNpuIsNoGpu) {
  Machine machine;
  EXPECT_EQ(machine.roleAfterwards(machine.display("0000:00:0b.0", 0x8086, {}, 0x120000)),
            FunctionRole::other);
  const auto port = machine.function(FunctionRole::rootPort, "0000:00:01.0", machine.bridge);
  EXPECT_EQ(machine.roleAfterwards(machine.display("0000:01:00.0", 0x8086, port, 0x120000)),
            FunctionRole::gpu);
}

// ASPEED, Matrox, Silicon Motion, QXL, ATI ES1000 and RN50.
TEST(IntegratedGraphics, DisplayOfManagementControllerIsNoGpu) {
  for (const auto& [vendor, device] :
       std::initializer_list<std::pair<std::uint16_t, std::uint16_t>>{{0x1a03, 0x2000},
                                                                      {0x102b, 0x0536},
                                                                      {0x126f, 0x0750},
                                                                      {0x1b36, 0x0100},
                                                                      {0x1002, 0x515e},
                                                                      {0x1002, 0x5969}}) {
    Device display;
    display.classCode = 0x030000;
    display.vendor = vendor;
    display.device = device;
    EXPECT_EQ(roleOf(display, std::nullopt), FunctionRole::other) << std::hex << vendor;
  }
}

// Instinct is 0380 or 1200, Radeon 0300, Intel's Flex 0380.
TEST(IntegratedGraphics, GpusOfOtherVendorsAreGpus) {
  for (const auto& [vendor, code] :
       std::initializer_list<std::pair<std::uint16_t, std::uint32_t>>{{0x1002, 0x038000},
                                                                      {0x1002, 0x120000},
                                                                      {0x1002, 0x030000},
                                                                      {0x1002, 0x030200},
                                                                      {0x8086, 0x038000},
                                                                      {0x1e3e, 0x030200}}) {
    Device gpu;
    gpu.classCode = code;
    gpu.vendor = vendor;
    EXPECT_EQ(roleOf(gpu, std::nullopt), FunctionRole::gpu) << std::hex << vendor << " " << code;
  }
}

TEST(IntegratedGraphics, NvidiaGpuOnRootBusIsGpu) {
  Machine machine;
  EXPECT_EQ(machine.roleAfterwards(machine.display("0000:00:02.0", 0x10de, {})), FunctionRole::gpu);
}

}  // namespace
}  // namespace vfpass::inventory
