#include "terminal.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

namespace vfpass::commands {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::vector<std::string> wordsOf(std::map<std::string, std::string> variables,
                                 bool elevated = false) {
  variables.try_emplace("TERM", "xterm");
  return pagerWords(
      [&](const char* name) {
        const auto found = variables.find(name);
        return found == variables.end() ? std::nullopt : std::optional(found->second);
      },
      elevated);
}

TEST(Pager, PrefersItsOwnVariable) {
  EXPECT_THAT(wordsOf({}), ElementsAre("less"));
  EXPECT_THAT(wordsOf({{"PAGER", "more"}}), ElementsAre("more"));
  EXPECT_THAT(wordsOf({{"PAGER", "more"}, {"VFPASS_PAGER", " less  -S "}}),
              ElementsAre("less", "-S"));
}

TEST(Pager, IsNoneIfTheVariableSaysSo) {
  EXPECT_THAT(wordsOf({{"PAGER", ""}}), IsEmpty());
  EXPECT_THAT(wordsOf({{"PAGER", "cat"}}), IsEmpty());
  EXPECT_THAT(wordsOf({{"PAGER", "less"}, {"VFPASS_PAGER", ""}}), IsEmpty());
}

TEST(Pager, IsNoneOnATerminalWithoutCursor) {
  EXPECT_THAT(wordsOf({{"TERM", "dumb"}}), IsEmpty());
  EXPECT_THAT(wordsOf({{"TERM", ""}}), IsEmpty());
}

TEST(Pager, IsOnlyLessWithLentRights) {
  EXPECT_THAT(wordsOf({{"PAGER", "vim -"}}, true), ElementsAre("less"));
  EXPECT_THAT(wordsOf({{"PAGER", "cat"}}, true), IsEmpty());
}

}  // namespace
}  // namespace vfpass::commands
