#include "vfpass/base/pci_resource.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace vfpass {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(PciResources, AreTheLines) {
  EXPECT_THAT(readPciResources("0x00000000d0000000 0x00000000d1ffffff 0x000000000014220c\n"
                               "0x0000000000000000 0x0000000000000000 0x0000000000000000\n"
                               "0x0000000000000000 0x00000000000fffff 0x0000000020040200\n"),
              ElementsAre(PciResource{0xd0000000, 0x2000000, 0x14220c}, PciResource{},
                          PciResource{0, 0x100000, unsetResource | 0x40200}));
  EXPECT_THAT(readPciResources(""), IsEmpty());
}

// Its place among the others stays.
TEST(PciResources, LineOfAnotherFormHasNothing) {
  for (const char* line : {"", "text", "0x1 0x2", "1 2 200", "0x1 0x2 0xg",
                           "0x10000000000000000 0x10000000000000001 0x200", "0x 0x 0x"}) {
    EXPECT_THAT(readPciResources(std::string(line) + "\n0x1000 0x1fff 0x200\n"),
                ElementsAre(PciResource{}, PciResource{0x1000, 0x1000, memoryResource}))
        << line;
  }
}

TEST(PciResources, RangeThatEndsBeforeItsBeginIsEmpty) {
  EXPECT_THAT(readPciResources("0x2000 0x1000 0x200\n"),
              ElementsAre(PciResource{0x2000, 0, memoryResource}));
  EXPECT_THAT(readPciResources("0x1 0xffffffffffffffff 0x200\n")[0].bytes, ~std::uint64_t{0});
}

}  // namespace
}  // namespace vfpass
