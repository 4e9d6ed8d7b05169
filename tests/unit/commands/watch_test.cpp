#include "terminal.hpp"

#include <gtest/gtest.h>

namespace vfpass::commands {
namespace {

TEST(Watch, ClipsTextToTheTerminal) {
  EXPECT_EQ(clipped("a\nb\nc\n", 3), "a\nb\nc\n");
  EXPECT_EQ(clipped("a\nb\nc\nd\n", 3), "a\nb\n(2 more lines)\n");
  EXPECT_EQ(clipped("a\nb\n", 1), "(2 more lines)\n");
  EXPECT_EQ(clipped("a\n", 0), "a\n");
}

}  // namespace
}  // namespace vfpass::commands
