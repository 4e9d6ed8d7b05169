#include "vfpass/inventory/read_inventory.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hosts/sysfs_tree.hpp"

namespace vfpass::inventory {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr std::uint64_t mib = 1ULL << 20U;
constexpr std::uint64_t gib = 1ULL << 30U;

// Of an H100.
constexpr const char* gpuResource =
    "0x00002030fb000000 0x00002030fbffffff 0x000000000014220c\n"
    "0x0000000000000000 0x0000000000000000 0x0000000000000000\n"
    "0x0000201000000000 0x0000202fffffffff 0x000000000014220c\n"
    "0x0000000000000000 0x0000000000000000 0x0000000000000000\n"
    "0x00002030f8000000 0x00002030f9ffffff 0x000000000014220c\n";

TEST(MemoryBars, AreMemoryResourcesOfFunction) {
  EXPECT_THAT(memoryBars(gpuResource, 0, 6),
              ElementsAre(MemoryBar{16 * mib, true, true}, MemoryBar{128 * gib, true, true},
                          MemoryBar{32 * mib, true, true}));
  EXPECT_THAT(memoryBars("0x0000000000003000 0x000000000000307f 0x0000000000040101\n"
                         "0x00000000fb000000 0x00000000fb000fff 0x0000000000040200\n",
                         0, 6),
              ElementsAre(MemoryBar{4096, false, false}))
      << "an I/O BAR is not a memory BAR";
}

TEST(MemoryBars, OfVfAreItsShareOfPfResource) {
  std::string text;
  for (int line = 0; line < 7; ++line) {
    text += "0x0000000000000000 0x0000000000000000 0x0000000000000000\n";
  }
  text += "0x0000203000000000 0x0000203000ffffff 0x000000000014220c\n";
  EXPECT_THAT(vfMemoryBars(text, 16), ElementsAre(MemoryBar{mib, true, true}));
  EXPECT_THAT(memoryBars(text, 0, 6), IsEmpty());
}

TEST(MemoryBars, OmitVfShareWithoutBytes) {
  std::string text;
  for (int line = 0; line < 7; ++line) {
    text += "0x0 0x0 0x0\n";
  }
  text += "0x0000000000000000 0x0000000000000020 0x000000000014220c\n";
  EXPECT_THAT(vfMemoryBars(text, 127), IsEmpty());
  EXPECT_THAT(vfMemoryBars(text, 0), IsEmpty());
}

TEST(MemoryBars, OmitInvalidLines) {
  for (const char* text : {"", "garbage\n", "0x12\n", "0x 0x 0x\n", "0x9 0x1 0x200\n",
                           "0x0 0xffffffffffffffff 0x100200\n", "1 2 3\n"}) {
    EXPECT_THAT(memoryBars(text, 0, 6), IsEmpty()) << text;
  }
}

TEST(ReadCapacity, ReadsAddressBitsMemoryHugepagesAndBars) {
  const hosts::SysfsTree tree;
  tree.file("proc/cpuinfo",
            "processor\t: 0\nvendor_id\t: GenuineIntel\nflags\t\t: " + std::string(5000, 'x') +
                "\naddress sizes\t: 46 bits physical, 57 bits virtual\n\n");
  const std::string node = "sys/devices/system/node/node1";
  tree.file(node + "/cpumap", "ff\n");
  tree.file(node + "/meminfo", "Node 1 MemTotal:       263814144 kB\nNode 1 MemFree: 1 kB\n");
  tree.file(node + "/hugepages/hugepages-1048576kB/nr_hugepages", "64\n");
  tree.file(node + "/hugepages/hugepages-1048576kB/free_hugepages", "48\n");
  const std::string path = "sys/devices/pci0000:3a/0000:3a:00.0";
  tree.file(path + "/uevent", "PCI_CLASS=30200\nPCI_ID=10DE:2330\n");
  tree.file(path + "/resource", gpuResource);
  tree.link("sys/bus/pci/devices/0000:3a:00.0", path);
  const host::Root root(tree.path());
  const auto gpu = *parsePciAddress("0000:3a:00.0");
  const auto capacity =
      readCapacity(root, readTopology(root), {gpu, *parsePciAddress("0000:ff:00.0")});
  EXPECT_EQ(capacity.addressBits, 46U);
  EXPECT_EQ(capacity.nodes.at(1).bytes, 263814144ULL * 1024);
  EXPECT_EQ(capacity.nodes.at(1).pages.at(gib).total, 64U);
  EXPECT_EQ(capacity.nodes.at(1).pages.at(gib).free, 48U);
  EXPECT_EQ(capacity.bars.at(gpu).size(), 3U);
  EXPECT_EQ(capacity.bars.size(), 1U) << "a missing function has none";
}

TEST(ReadCapacity, IsEmptyForEmptyHost) {
  const hosts::SysfsTree tree;
  const host::Root root(tree.path());
  const auto capacity = readCapacity(root, readTopology(root), {});
  EXPECT_EQ(capacity.addressBits, 0U);
  EXPECT_THAT(capacity.nodes, IsEmpty());
}

}  // namespace
}  // namespace vfpass::inventory
