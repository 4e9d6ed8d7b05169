#include "vfpass/base/shell.hpp"

#include <gtest/gtest.h>

namespace vfpass {
namespace {

TEST(Shell, OneWord) {
  EXPECT_EQ(shellQuoted("/etc/netplan/50-a.yaml"), "/etc/netplan/50-a.yaml");
  EXPECT_EQ(shellQuoted(""), "''");
  EXPECT_EQ(shellQuoted("-rf"), "'-rf'");
  EXPECT_EQ(shellQuoted("it's $(id) `id`"), "'it'\\''s $(id) `id`'");
}

}  // namespace
}  // namespace vfpass
