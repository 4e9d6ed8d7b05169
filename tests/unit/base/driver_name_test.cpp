#include "vfpass/base/driver_name.hpp"

#include <gtest/gtest.h>

namespace vfpass {
namespace {

TEST(ParseDriverName, AcceptsDriverNamesAndEmptyText) {
  for (const std::string& name : {std::string(), std::string("vfio-pci"), std::string("mlx5_core"),
                                  std::string("8139too"), std::string(63, 'a')}) {
    EXPECT_EQ(parseDriverName(name), name);
  }
}

TEST(ParseDriverName, RejectsPathsAndOptions) {
  for (const std::string& name :
       {std::string("../../../../../../tmp/x"), std::string("/tmp/x"), std::string("a b"),
        std::string("a\n"), std::string("."), std::string("-C"), std::string("a\0b", 3),
        std::string("\xc3\xa4"), std::string(64, 'a')}) {
    EXPECT_EQ(parseDriverName(name), std::nullopt) << name;
  }
}

}  // namespace
}  // namespace vfpass
