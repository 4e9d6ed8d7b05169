#include "vfpass/report/table.hpp"

#include <gtest/gtest.h>

#include <sstream>

namespace vfpass::report {
namespace {

std::string writtenTable(const Table& table, const Style& style = {}) {
  std::ostringstream out;
  table.write(out, style);
  return out.str();
}

TEST(Table, AlignsColumnsWithoutTrailingSpaces) {
  Table table({"NAME", "N", "NOTE"});
  table.add({{"a-long-name"}, {"1"}, {""}});
  table.add({{"b"}, {"200"}, {"x"}});
  EXPECT_EQ(writtenTable(table),
            "NAME         N    NOTE\n"
            "a-long-name  1\n"
            "b            200  x\n");
}

TEST(Table, CountsCharactersNotBytes) {
  Table table({"N", "X"});
  table.add({{"\xc3\xa4\xc3\xb6"}, {"1"}});
  table.add({{"ab"}, {"2"}});
  EXPECT_EQ(writtenTable(table), "N   X\n\xc3\xa4\xc3\xb6  1\nab  2\n");
}

TEST(Table, EscapesUntrustedTextBeforeMeasuring) {
  Table table({"N", "X"});
  table.add({{"a\x1b[2J\n"}, {"1"}});
  EXPECT_EQ(writtenTable(table), "N             X\na\\x1b[2J\\x0a  1\n");
}

TEST(Table, ColoursOnlyIfTheStyleSaysSo) {
  Table table({"N"});
  table.add({{"bad", Tint::bad}});
  EXPECT_EQ(writtenTable(table), "N\nbad\n");
  EXPECT_EQ(writtenTable(table, {.json = false, .color = true}),
            "\x1b[1mN\x1b[0m\n\x1b[31mbad\x1b[0m\n");
}

TEST(Table, ColourDoesNotShiftColumns) {
  Table table({"A", "B"});
  table.add({{"bad", Tint::bad}, {"x"}});
  table.add({{"good"}, {"y"}});
  EXPECT_EQ(writtenTable(table, {.json = false, .color = true}),
            "\x1b[1mA\x1b[0m     \x1b[1mB\x1b[0m\n"
            "\x1b[31mbad\x1b[0m   x\n"
            "good  y\n");
}

TEST(Table, AcceptsShortRowsAndDropsExtraCells) {
  Table table({"A", "B"});
  table.add({{"1"}});
  table.add({{"1"}, {"2"}, {"3"}});
  EXPECT_EQ(writtenTable(table), "A  B\n1\n1  2\n");
}

}  // namespace
}  // namespace vfpass::report
