#include "vfpass/base/driver_name.hpp"

#include <gtest/gtest.h>

namespace vfpass {
namespace {

TEST(DriverName, HasLettersDigitsUnderscoresAndHyphens) {
  for (const std::string& name : {std::string("vfio-pci"), std::string("mlx5_core"),
                                  std::string("8139too"), std::string(63, 'a')}) {
    EXPECT_TRUE(isDriverName(name)) << name;
  }
}

TEST(DriverName, IsNoPathNoOptionAndNotEmpty) {
  for (const std::string& name :
       {std::string(), std::string("../../../../../../tmp/x"), std::string("/tmp/x"),
        std::string("a b"), std::string("a\n"), std::string("."), std::string("-C"),
        std::string("a\0b", 3), std::string("\xc3\xa4"), std::string(64, 'a')}) {
    EXPECT_FALSE(isDriverName(name)) << name;
  }
}

}  // namespace
}  // namespace vfpass
