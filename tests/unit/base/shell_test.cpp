#include "vfpass/base/shell.hpp"

#include <gtest/gtest.h>

namespace vfpass {
namespace {

TEST(Shell, QuotesOneWord) {
  EXPECT_EQ(shellQuoted("/etc/netplan/50-a.yaml"), "/etc/netplan/50-a.yaml");
  EXPECT_EQ(shellQuoted(""), "''");
  EXPECT_EQ(shellQuoted("-rf"), "'-rf'");
  EXPECT_EQ(shellQuoted("it's $(id) `id`"), "'it'\\''s $(id) `id`'");
}

TEST(ShellArgument, QuotesAndEscapesUntrustedName) {
  EXPECT_EQ(shellArgument("train0"), "train0");
  EXPECT_EQ(shellArgument("my vm"), "'my vm'");
  EXPECT_EQ(shellArgument("a; reboot"), "'a; reboot'");
  EXPECT_EQ(shellArgument("it's"), "'it'\\''s'");
  EXPECT_EQ(shellArgument("a\x1b[2J\nb"), "'a\\x1b[2J\\x0ab'");
}

}  // namespace
}  // namespace vfpass
