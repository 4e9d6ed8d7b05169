#include "operations.hpp"

#include <gtest/gtest.h>

namespace vfpass::hook {
namespace {

// Several objections to a start are one error of several lines.
TEST(ErrorLine, IsOneLineWithRemedy) {
  EXPECT_EQ(errorLine(Error("2 problems:\none\ntwo", "do this;\nthen that")),
            "2 problems: one two; do this; then that");
  EXPECT_EQ(errorLine(Error("only this")), "only this");
}

TEST(ErrorLine, HasNoControlCharacters) {
  const std::string line = errorLine(Error("a\x1b]0;owned\x07 name", "remove \x7f"));
  EXPECT_EQ(line.find_first_of("\x1b\x07\x7f"), std::string::npos) << line;
}

}  // namespace
}  // namespace vfpass::hook
