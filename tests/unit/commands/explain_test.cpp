#include <gmock/gmock.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "vfpass/doctor/doctor.hpp"
#include "vfpass/report/check_pages.hpp"

namespace vfpass::commands {
namespace {

using report::CheckPage;

std::set<std::string> documentedKeys(const std::string& command) {
  std::set<std::string> keys;
  for (const CheckPage& page : report::allCheckPages()) {
    if (page.command == command) {
      keys.insert(page.key);
    }
  }
  return keys;
}

std::string textOf(const std::filesystem::path& file) {
  std::ostringstream text;
  text << std::ifstream(file).rdbuf();
  return text.str();
}

// The sources that make findings of verify.
std::string sourcesOfVerify() {
  const std::filesystem::path source = std::filesystem::path(VFPASS_SOURCE_DIR) / "src";
  std::string text;
  for (const char* name :
       {"rdma_counters", "verification_steps", "verify_started", "verify_with_peer"}) {
    text += textOf(source / "commands" / (std::string(name) + ".cpp"));
  }
  for (const auto& entry : std::filesystem::directory_iterator(source / "guest/verify")) {
    if (entry.path().extension() == ".cpp") {
      text += textOf(entry.path());
    }
  }
  return text;
}

// First members of findings, `"data-"` of `"data-" + memory` among them.
std::set<std::string> keysInSources() {
  static const std::regex finding(
      "(?:Finding(?: \\w+)?\\{|return \\{+|push_back\\(\\{|seenByHost\\(\\{|"
      "\\b(?:pass|fail|missing|conclude|enter)\\()\\s*"
      "\"([a-z][a-z0-9]*(?:-[a-z0-9]+)*-?)\"(?:,| \\+)");
  const std::string text = sourcesOfVerify();
  std::set<std::string> keys;
  for (std::sregex_iterator found(text.begin(), text.end(), finding), end; found != end; ++found) {
    keys.insert((*found)[1]);
  }
  return keys;
}

// The keys of a pair begin with `peer-`, which verification puts before the names of its findings.
bool isDocumented(const std::set<std::string>& keys, const std::string& key) {
  return keys.contains(key) || keys.contains("peer-" + key) || key == "peer-" ||
         (key.ends_with('-') && keys.contains(key + "host") && keys.contains(key + "gpu"));
}

// doctor examines and reports its checks in the order of checkNames().
TEST(Explain, EveryCheckOfDoctorHasPageInTheOrderOfItsReport) {
  std::vector<std::string> documented;
  for (const CheckPage& page : report::readCheckPages("doctor", report::doctorDocument())) {
    documented.push_back(page.key);
  }
  EXPECT_EQ(documented, doctor::checkNames());
}

TEST(Explain, NumberOfChecksOfDoctorIsDocumented) {
  const std::string number = std::to_string(doctor::checkNames().size());
  EXPECT_THAT(textOf(std::filesystem::path(VFPASS_SOURCE_DIR) / "docs/commands.md"),
              testing::HasSubstr("check this host: " + number + " checks in the order"));
}

TEST(Explain, EveryFindingOfVerifyHasPage) {
  const auto documented = documentedKeys("verify");
  const auto keys = keysInSources();
  EXPECT_GT(keys.size(), 30U);
  for (const std::string& key : keys) {
    EXPECT_TRUE(isDocumented(documented, key)) << key << " has no row in docs/verify.md";
  }
}

TEST(Explain, EveryPageOfVerifyHasFinding) {
  static const std::regex pair("^peer-");
  static const std::regex memory("(gpu-to-host|host-to-gpu|host|gpu)$");
  const std::string text = sourcesOfVerify();
  for (const std::string& key : documentedKeys("verify")) {
    const std::string beginning = std::regex_replace(key, memory, "");
    const std::array parts{key, beginning, std::regex_replace(key, pair, ""),
                           std::regex_replace(beginning, pair, "")};
    EXPECT_TRUE(std::ranges::any_of(parts, [&](const std::string& part) {
      return text.find('"' + part + '"') != std::string::npos;
    })) << key;
  }
}

TEST(Explain, PagesAreComplete) {
  for (const CheckPage& page : report::allCheckPages()) {
    EXPECT_FALSE(page.cause.empty()) << page.key;
    EXPECT_EQ(page.cause.find("]("), std::string::npos) << page.key;
    EXPECT_EQ(page.observer.empty(), page.command == "doctor") << page.key;
    EXPECT_FALSE(page.method.empty()) << page.key << " of " << page.command;
    EXPECT_FALSE(page.remedy.empty()) << page.key << " of " << page.command;
    EXPECT_FALSE(page.source.empty()) << page.key;
  }
}

}  // namespace
}  // namespace vfpass::commands
