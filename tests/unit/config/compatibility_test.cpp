// The configuration of every released version is read without problems and means the same as then:
// tests/compatibility/VERSION/configuration. The files of this version are in
// tests/compatibility/current; with VFPASS_REGENERATE=1 their meanings are written.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>

#include "meaning.hpp"
#include "support.hpp"

namespace vfpass::config {
namespace {

namespace fs = std::filesystem;

const fs::path compatibilityFolder = fs::path(VFPASS_SOURCE_DIR) / "tests" / "compatibility";

std::vector<fs::path> configurations() {
  std::vector<fs::path> found = {compatibilityFolder / "current"};
  for (const auto& entry : fs::directory_iterator(compatibilityFolder)) {
    if (fs::exists(entry.path() / "configuration")) {
      found.push_back(entry.path() / "configuration");
    }
  }
  std::sort(found.begin(), found.end());
  return found;
}

// A copy, because a checkout may be group-writable and belong to another user.
Configuration load(const fs::path& directory) {
  const TemporaryFolder copy;
  for (const auto& entry : fs::recursive_directory_iterator(directory)) {
    if (entry.path().extension() == ".yaml") {
      copy.write(fs::relative(entry.path(), directory).string(), readWhole(entry.path()));
    }
  }
  return loadConfiguration(copy.path());
}

void compare(const fs::path& expected, const std::string& actual) {
  if (std::getenv("VFPASS_REGENERATE") != nullptr &&
      expected.string().find("/current/") != std::string::npos) {
    std::ofstream(expected, std::ios::binary) << actual;
  }
  EXPECT_EQ(actual, readWhole(expected)) << expected;
}

class EarlierConfiguration : public testing::TestWithParam<fs::path> {};

TEST_P(EarlierConfiguration, IsReadWithTheSameMeaning) {
  const Configuration configuration = load(GetParam());
  for (const auto& problem : configuration.problems) {
    ADD_FAILURE() << toString(problem);
  }
  ASSERT_FALSE(configuration.mappings.empty());
  for (const Mapping& mapping : configuration.mappings) {
    const auto name = fs::path(mapping.file).stem().string() + ".meaning";
    compare(GetParam() / "vms" / name, meaningOf(mapping));
  }
  compare(GetParam() / "host.meaning", meaningOfHost(configuration));
}

std::string versionOf(const testing::TestParamInfo<fs::path>& instance) {
  std::string name = instance.param.filename() == "current"
                         ? "current"
                         : instance.param.parent_path().filename().string();
  std::replace_if(
      name.begin(), name.end(), [](char each) { return !std::isalnum(each); }, '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(config, EarlierConfiguration, testing::ValuesIn(configurations()),
                         versionOf);

}  // namespace
}  // namespace vfpass::config
