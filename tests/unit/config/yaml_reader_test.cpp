#include "yaml_reader.hpp"

#include <gmock/gmock.h>

#include "support.hpp"

namespace vfpass::config {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::string> problemsOf(const std::string& text) {
  ProblemList list("f");
  readYaml(text, list);
  std::vector<std::string> lines;
  for (const auto& problem : list.take()) {
    lines.push_back(toString(problem));
  }
  return lines;
}

TEST(YamlReader, KeepsPlacesAndQuotes) {
  ProblemList list("f");
  const auto root = readYaml("a: 1\nb: \"1\"\nc: [x, {d: yes}]\n", list);
  ASSERT_TRUE(root);
  EXPECT_TRUE(list.empty());
  EXPECT_EQ(find(*root, "a")->kind, NodeKind::integer);
  EXPECT_EQ(find(*root, "b")->kind, NodeKind::text);
  EXPECT_TRUE(find(*root, "b")->quoted);
  const Node& inner = find(*root, "c")->items.at(1);
  EXPECT_EQ(find(inner, "d")->position, (Position{3, 12}));
  EXPECT_TRUE(find(inner, "d")->boolean);
}

TEST(YamlReader, RefusesConstructsThatYamlCppAccepts) {
  EXPECT_THAT(problemsOf("a: 1\nb: 2\na: 3\n"),
              ElementsAre(HasSubstr("f:3:1: the key `a` is written twice, first in line 1")));
  EXPECT_THAT(problemsOf("a: 1\n\"a\": 3\n"), ElementsAre(HasSubstr("f:2:1: ")));
  EXPECT_THAT(problemsOf("a: &x [1]\nb: *x\n"),
              ElementsAre(HasSubstr("f:1:4: anchors"), HasSubstr("f:2:4: aliases")));
  EXPECT_THAT(problemsOf("a: &x [*x]\n"), ElementsAre(HasSubstr("anchors"), HasSubstr("aliases")));
  for (const char* tagged : {"a: !!str 3\n", "a: ! x\n", "a: !foo [1]\n", "a: !<tag:x> y\n",
                             "a: !\n  b: 1\n", "a: !!null\n"}) {
    EXPECT_THAT(problemsOf(tagged), ElementsAre(HasSubstr("f:1:4: tags"))) << tagged;
  }
  for (const char* number : {"a: 010\n", "a: 0x64\n", "a: 0o17\n", "a: 1_000\n", "a: 12:30\n"}) {
    EXPECT_THAT(problemsOf(number), ElementsAre(HasSubstr("f:1:4: "))) << number;
  }
  EXPECT_THAT(problemsOf("a: \"010\"\nb: '0x64'\n"), ElementsAre());
}

TEST(YamlReader, RefusesUnclosedQuotes) {
  EXPECT_THAT(problemsOf("a: 'x\n"), ElementsAre(HasSubstr("f:1:4: the quotation mark")));
  EXPECT_THAT(problemsOf("a: \"x\\\"\n"), ElementsAre(HasSubstr("f:1:4: the quotation mark")));
  EXPECT_THAT(problemsOf("a: 'it''s'\nb: \"\\\\\"\nc: ''\n"), ElementsAre());
}

TEST(YamlReader, RefusesSecondDocument) {
  EXPECT_THAT(problemsOf("---\na: 1\n...\n"), ElementsAre());
  EXPECT_THAT(problemsOf("a: 1\n---\nb: 2\n"), ElementsAre(HasSubstr("f:2:1: expected the end")));
  EXPECT_THAT(problemsOf("- a\nb: c\n"), ElementsAre(HasSubstr("f:2:1: expected the end")));
}

TEST(YamlReader, ReportsEmptyFile) {
  for (const char* empty : {"", "\n\n", "# only a comment\n", "---\n", "~\n"}) {
    EXPECT_THAT(problemsOf(empty), ElementsAre(HasSubstr("f:1:1: the file is empty"))) << empty;
  }
}

TEST(YamlReader, RefusesKeysThatAreNotText) {
  EXPECT_THAT(problemsOf("? [a]\n: b\n"), ElementsAre(HasSubstr("expected a key, found a list")));
  EXPECT_THAT(problemsOf("? {a: 1}\n: b\n"), ElementsAre(HasSubstr("expected a key")));
  EXPECT_THAT(problemsOf(": b\n"), ElementsAre(HasSubstr("expected a key")));
}

TEST(YamlReader, RefusesRawAndEscapedControlCharacters) {
  EXPECT_THAT(problemsOf("a: \x1b[31m\n"), ElementsAre(HasSubstr("f:1:4: found the control")));
  EXPECT_THAT(problemsOf("a: \"\\x1b[31m\"\n"), ElementsAre(HasSubstr("U+001B in a value")));
  EXPECT_THAT(problemsOf("\"\\x07\": 1\n"), ElementsAre(HasSubstr("U+0007 in a value")));
  EXPECT_THAT(problemsOf("a: |\n  b\n  c\n"), ElementsAre(HasSubstr("U+000A in a value")));
  EXPECT_THAT(problemsOf("a: \xff\n"), ElementsAre(HasSubstr("f:1:4: not valid UTF-8")));
}

TEST(YamlReader, ReportsPlaceOfSyntaxErrors) {
  EXPECT_THAT(problemsOf("a: b: c\n"), ElementsAre(HasSubstr("f:1:5: ")));
  EXPECT_THAT(problemsOf("a: 1\nb: [1, 2\n"),
              ElementsAre(HasSubstr("f:2:4: this bracket is never closed")));
  EXPECT_THAT(problemsOf("a:\n\tb: 1\n"), ElementsAre(HasSubstr("spaces, not tabs")));
}

TEST(YamlReader, LimitsDepthCountAndLength) {
  EXPECT_THAT(problemsOf(std::string(100, '[')), ElementsAre(HasSubstr("levels deep")));
  std::string many = "a: [";
  for (int i = 0; i < 30000; ++i) {
    many += "1,";
  }
  EXPECT_THAT(problemsOf(many + "]"), ElementsAre(HasSubstr("more than 20000 values")));
  EXPECT_THAT(problemsOf("a: " + std::string(2000, 'x')),
              ElementsAre(HasSubstr("at most 1024 bytes in one value")));
}

TEST(YamlReader, ShowsAtMostOneHundredProblems) {
  std::string text;
  for (int i = 0; i < 500; ++i) {
    text += "- 010\n";
  }
  const auto problems = problemsOf(text);
  ASSERT_EQ(problems.size(), 101U);
  EXPECT_THAT(problems.back(), HasSubstr("400 further problems"));
}

}  // namespace
}  // namespace vfpass::config
