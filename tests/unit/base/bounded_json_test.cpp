#include "vfpass/base/bounded_read.hpp"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

namespace vfpass {
namespace {

constexpr JsonLimits limits{std::size_t{1} << 10U, 3};

std::string refusalOf(const std::string& text, const JsonLimits& within = limits) {
  try {
    parseBoundedJson(text, within);
  } catch (const JsonRefused& reason) {
    return reason.what();
  }
  return "";
}

TEST(BoundedJson, ReadsWithinLimits) {
  EXPECT_EQ(parseBoundedJson(R"({"a": [1, 2]})", limits).at("a").at(1), 2);
  EXPECT_EQ(refusalOf(std::string(limits.bytes - 1, ' ') + "1"), "");
  EXPECT_EQ(refusalOf(R"([{"a": ["deepest"]}])"), "");
}

TEST(BoundedJson, NamesExceededLimit) {
  EXPECT_EQ(refusalOf(std::string(limits.bytes, ' ') + "1"), "larger than 1 KiB");
  EXPECT_EQ(refusalOf(std::string((4U << 20U) + 1, ' '), {4U << 20U, 3}), "larger than 4 MiB");
  EXPECT_EQ(refusalOf("[[[[]]]]"), "nested more than 3 levels deep");
  EXPECT_EQ(refusalOf(R"({"a": {"b": [{}]}})"), "nested more than 3 levels deep");
}

TEST(BoundedJson, StopsAtFirstLevelThatIsTooDeep) {
  const JsonLimits large{std::size_t{1} << 20U, 32};
  const std::string open(100'000, '[');
  EXPECT_EQ(refusalOf(open, large), "nested more than 32 levels deep");
  EXPECT_EQ(refusalOf(open + std::string(100'000, ']'), large), "nested more than 32 levels deep");
}

TEST(BoundedJson, RefusesDuplicateMembers) {
  EXPECT_EQ(refusalOf(R"({"a": {"b": 1, "b": 2}})"), "an object has a duplicate member");
  EXPECT_EQ(refusalOf(R"({"a": {"b": 1}, "a": 2})"), "an object has a duplicate member");
  EXPECT_EQ(refusalOf(R"({"a": 1, "\u0061": 2})"), "an object has a duplicate member");
  EXPECT_EQ(refusalOf(R"({"a": {"b": 1}, "b": [{"a": 1}, {"a": 2}]})"), "");
}

TEST(BoundedJson, NeverQuotesWhatIsNotJson) {
  EXPECT_EQ(refusalOf("{\"secret"), "not valid JSON at byte 9");
  EXPECT_EQ(refusalOf(""), "not valid JSON at byte 1");
  EXPECT_EQ(refusalOf("\xff"), "not valid JSON at byte 1");
  EXPECT_EQ(refusalOf("1e999"), "not valid JSON");
}

}  // namespace
}  // namespace vfpass
