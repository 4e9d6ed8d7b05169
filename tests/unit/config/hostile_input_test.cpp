// Any file content must be either accepted or reported as a problem with a place, never crash.
#include <gtest/gtest.h>

#include <random>

#include "readers.hpp"
#include "support.hpp"

namespace vfpass::config {
namespace {

namespace fs = std::filesystem;

void expectAnswer(const std::string& text) {
  for (const bool host : {false, true}) {
    ProblemList list("f");
    bool sound = false;
    if (host) {
      readHostFile(text, list);
      // A host.yaml with only a version is valid.
      sound = text.find("version: 1") != std::string::npos;
    } else {
      const Mapping mapping = readMapping(text, list);
      sound = !mapping.vfs.empty() || !mapping.functions.empty();
    }
    const auto problems = list.take();
    for (const auto& problem : problems) {
      ASSERT_GE(problem.place.line, 1) << text;
      ASSERT_GE(problem.place.column, 1) << text;
      ASSERT_FALSE(problem.message.empty()) << text;
    }
    ASSERT_TRUE(sound || !problems.empty() || text.find("pfs") != std::string::npos) << text;
  }
}

std::vector<std::string> exampleTexts() {
  std::vector<std::string> texts;
  for (const auto& entry : fs::directory_iterator(fs::path(VFPASS_SOURCE_DIR) / "examples")) {
    if (entry.path().extension() == ".yaml") {
      texts.push_back(readWhole(entry.path()));
    }
  }
  return texts;
}

TEST(HostileInput, SurvivesRandomBytes) {
  std::mt19937 random(1);
  for (int round = 0; round < 400; ++round) {
    std::string text(random() % 200, '\0');
    for (auto& c : text) {
      c = static_cast<char>(random());
    }
    expectAnswer(text);
  }
}

TEST(HostileInput, SurvivesRandomYamlCharacters) {
  static constexpr std::string_view alphabet = "ab01 \n\n  :-?[]{},&*!|>'\"%@`#~.\t\\vfs";
  std::mt19937 random(2);
  for (int round = 0; round < 2000; ++round) {
    std::string text;
    for (auto length = random() % 120; length > 0; --length) {
      text += alphabet[random() % alphabet.size()];
    }
    expectAnswer(text);
  }
}

TEST(HostileInput, SurvivesTruncatedExamples) {
  for (const auto& text : exampleTexts()) {
    for (std::size_t length = 0; length < text.size(); length += 13) {
      expectAnswer(text.substr(0, length));
    }
  }
}

TEST(HostileInput, SurvivesMutatedExamples) {
  std::mt19937 random(3);
  for (const auto& text : exampleTexts()) {
    for (int round = 0; round < 40; ++round) {
      std::string changed = text;
      for (int changes = 0; changes < 4; ++changes) {
        changed[random() % changed.size()] = static_cast<char>(random() % 128);
      }
      expectAnswer(changed);
    }
  }
}

std::string repeated(std::string_view piece, std::size_t size) {
  std::string text;
  while (text.size() + piece.size() <= size) {
    text += piece;
  }
  return text;
}

TEST(HostileInput, SurvivesLongRepetitionsOfOneToken) {
  for (const char* piece :
       {"[",      "{",     "- ",  "? ",  ": ",   "a: ", "\"",   "'",  "&a ", "!a ",  "\n",    "#",
        "a: 1\n", "---\n", "|\n", "[a,", "%a\n", "\t",  "[a],", "a ", "a,",  "'a' ", "- 'a\n"}) {
    expectAnswer(repeated(piece, 1U << 14U));
  }
}

// Quadratic time in the line length would make this test time out.
TEST(HostileInput, ReadsLargestFileOnOneLineInLinearTime) {
  expectAnswer("a: [" + repeated("\"some text of a length\", ", (1U << 20U) - 8) + "]");
}

}  // namespace
}  // namespace vfpass::config
