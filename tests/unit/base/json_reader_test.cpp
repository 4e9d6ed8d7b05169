#include "vfpass/base/json_reader.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

namespace vfpass {
namespace {

using Json = nlohmann::json;
using testing::ElementsAre;

const JsonSource source{"invalid reply from the guest", "check the guest", ExitCode::badInput};

class JsonReaderTest : public testing::Test {
 protected:
  static std::string failureOf(const std::function<void()>& read) {
    try {
      read();
    } catch (const Error& error) {
      EXPECT_EQ(error.remedy(), source.remedy);
      EXPECT_EQ(error.code(), source.code);
      return error.what();
    }
    return "none";
  }

  /// The failure without the source's message.
  template <typename Read>
  static std::string reasonOf(Read read) {
    const std::string start = source.message + ": ";
    const std::string failure = failureOf([&] { static_cast<void>(read()); });
    return failure.starts_with(start) ? failure.substr(start.size()) : failure;
  }

  const Json document = parseJson(
      R"({"text": "a", "flag": true, "number": 5, "negative": -5, "half": 1.5, "huge": 1e300,
          "none": null, "list": [1, {"deep": [7, "x"]}], "object": {"inner": {"wide": 70000}}})",
      {1000, 5}, source);
  const JsonReader reader{document, source};
};

TEST_F(JsonReaderTest, StrictReadsReturnValuesOfTheType) {
  EXPECT_EQ(reader["text"].requireText(), "a");
  EXPECT_TRUE(reader["flag"].requireFlag());
  EXPECT_EQ(reader["number"].requireNumber(5), 5);
  EXPECT_EQ(reader["object"].requireObject()["inner"]["wide"].requireNumber<std::uint32_t>(),
            70000U);
  const auto list = reader["list"].requireList(2);
  EXPECT_EQ(list.size(), 2U);
  EXPECT_EQ(list.front().requireNumber(), 1U);
  EXPECT_EQ(list.back()["deep"].requireList()[1].requireText(), "x");
}

TEST_F(JsonReaderTest, StrictReadsNameSourcePathAndType) {
  EXPECT_EQ(failureOf([&] { static_cast<void>(reader["object"]["inner"].requireText()); }),
            "invalid reply from the guest: expected text at 'object.inner'");
  EXPECT_EQ(reasonOf([&] { return reader["list"].requireList()[1]["deep"].requireFlag(); }),
            "expected true or false at 'list[1].deep'");
  EXPECT_EQ(reasonOf([&] { return reader.requireText(); }), "expected text");
  EXPECT_EQ(reasonOf([&] { return reader["text"].requireObject().isMissing(); }),
            "expected an object at 'text'");
  EXPECT_EQ(reasonOf([&] { return reader["text"].requireList().size(); }),
            "expected a list at 'text'");
  EXPECT_EQ(reasonOf([&] { return reader["none"].requireNumber(9); }),
            "expected a number up to 9 at 'none'");
}

TEST_F(JsonReaderTest, StrictReadsRefuseMissingMembers) {
  EXPECT_EQ(reasonOf([&] { return reader["object"]["absent"].requireFlag(); }),
            "member 'object.absent' is missing: expected true or false");
  EXPECT_EQ(reasonOf([&] { return reader["text"]["inner"].requireText(); }),
            "member 'text.inner' is missing: expected text");
  EXPECT_EQ(reasonOf([&] { return reader["absent"]["inner"].requireList().size(); }),
            "member 'absent.inner' is missing: expected a list");
}

TEST_F(JsonReaderTest, StrictReadsRefuseValuesOutOfRange) {
  EXPECT_EQ(reasonOf([&] { return reader["number"].requireNumber(4); }),
            "expected a number up to 4 at 'number'");
  EXPECT_EQ(reasonOf([&] { return reader["object"]["inner"]["wide"].requireNumber<uint16_t>(); }),
            "expected a number up to 65535 at 'object.inner.wide'");
  for (const char* name : {"negative", "half", "huge", "flag", "text"}) {
    EXPECT_EQ(reasonOf([&] { return reader[name].requireNumber(9); }),
              "expected a number up to 9 at '" + std::string(name) + "'");
  }
  EXPECT_EQ(reasonOf([&] { return reader["list"].requireList(1).size(); }),
            "expected a list of at most 1 at 'list'");
}

TEST_F(JsonReaderTest, StrictReadsRefuseUnknownWords) {
  const auto parse = [](const std::string& text) {
    return text == "b" ? std::optional(7) : std::nullopt;
  };
  EXPECT_EQ(reasonOf([&] { return reader["text"].requireParsed(parse); }),
            "unknown value 'a' at 'text'");
  EXPECT_EQ(reasonOf([&] { return reader["number"].requireParsed(parse); }),
            "expected text at 'number'");
}

TEST_F(JsonReaderTest, LenientReadsReturnValuesOfTheType) {
  EXPECT_EQ(reader["text"].textOr("z"), "a");
  EXPECT_TRUE(reader["flag"].flagOr(false));
  EXPECT_EQ(reader["number"].numberOr(9), 5U);
  EXPECT_EQ(reader["number"].numberOrNone<int>(5), 5);
  EXPECT_EQ(reader["half"].figureOrNone(), 1.5);
  EXPECT_EQ(reader["negative"].figureOrNone(), -5);
  std::vector<std::uint64_t> numbers;
  for (const JsonReader& each : reader["list"].listOrEmpty()) {
    numbers.push_back(each.numberOr(9));
  }
  EXPECT_THAT(numbers, ElementsAre(1, 9));
}

TEST_F(JsonReaderTest, LenientReadsNeverFail) {
  for (const char* name : {"absent", "none", "list", "object"}) {
    EXPECT_EQ(reader[name].textOr("z"), "z") << name;
    EXPECT_EQ(reader[name].flagOrNone(), std::nullopt) << name;
    EXPECT_TRUE(reader[name].flagOr(true)) << name;
    EXPECT_EQ(reader[name].numberOr(9), 9U) << name;
    EXPECT_EQ(reader[name].figureOrNone(), std::nullopt) << name;
    EXPECT_EQ(reader[name]["inner"]["x"].textOr("z"), "z") << name;
  }
  EXPECT_TRUE(reader["text"].listOrEmpty().empty());
  EXPECT_TRUE(reader["absent"].listOrEmpty().empty());
}

TEST_F(JsonReaderTest, LenientReadsIgnoreValuesOutOfRange) {
  EXPECT_EQ(reader["number"].numberOrNone<int>(4), std::nullopt);
  EXPECT_EQ(reader["object"]["inner"]["wide"].numberOrNone<std::uint16_t>(), std::nullopt);
  for (const char* name : {"negative", "half", "huge", "flag"}) {
    EXPECT_EQ(reader[name].numberOr(9), 9U) << name;
    EXPECT_EQ(reader[name].numberOrNone<int>(), std::nullopt) << name;
  }
}

TEST_F(JsonReaderTest, TellsMissingFromNull) {
  EXPECT_TRUE(reader["absent"].isMissing());
  EXPECT_FALSE(reader["none"].isMissing());
  EXPECT_TRUE(reader["none"].json().is_null());
  EXPECT_TRUE(reader["absent"].json().is_null());
}

TEST_F(JsonReaderTest, MessagesArePrintable) {
  const Json hostile = Json::parse(R"({"\u001b[2J": 1})");
  EXPECT_EQ(reasonOf([&] { return JsonReader(hostile, source)["\x1b[2J"].requireText(); }),
            R"(expected text at '\x1b[2J')");
}

TEST_F(JsonReaderTest, ParsingNamesTheSource) {
  const auto parse = [](const std::string& text) {
    return reasonOf([&] { return parseJson(text, {10, 2}, source); });
  };
  EXPECT_EQ(parse("[[1]]"), "none");
  EXPECT_EQ(parse("[[[1]]]"), "nested more than 2 levels deep");
  EXPECT_EQ(parse(std::string(11, ' ')), "larger than 10 bytes");
  EXPECT_EQ(parse("{"), "not valid JSON at byte 2");
}

}  // namespace
}  // namespace vfpass
