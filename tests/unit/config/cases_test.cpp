// cases/NAME.yaml must give exactly the problems in cases/NAME.expected. Files whose names begin
// with `host-` are read as host.yaml. With VFPASS_REGENERATE=1 the expected files are rewritten.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>

#include "support.hpp"
#include "vfpass/base/text.hpp"

namespace vfpass::config {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path> caseFiles() {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(fs::path(VFPASS_SOURCE_DIR) / "tests" / "unit" /
                                                  "config" / "cases")) {
    if (entry.path().extension() == ".yaml") {
      files.push_back(entry.path());
    }
  }
  std::sort(files.begin(), files.end());
  return files;
}

class Case : public ::testing::TestWithParam<fs::path> {};

TEST_P(Case, GivesExactlyTheExpectedProblems) {
  const fs::path& file = GetParam();
  const std::string text = readWhole(file);
  const auto problems = file.filename().string().starts_with("host-")
                            ? hostProblems(text)
                            : readMappingText(text).problems;
  const std::string actual = join(problems, "\n") + "\n";
  fs::path expected = file;
  expected.replace_extension(".expected");
  if (std::getenv("VFPASS_REGENERATE") != nullptr) {
    std::ofstream(expected, std::ios::binary) << actual;
  }
  EXPECT_EQ(actual, readWhole(expected));
}

std::string caseName(const ::testing::TestParamInfo<fs::path>& instance) {
  std::string name = instance.param.stem().string();
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(config, Case, ::testing::ValuesIn(caseFiles()), caseName);

}  // namespace
}  // namespace vfpass::config
