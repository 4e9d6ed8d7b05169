#include "vfpass/state/report_history.hpp"

#include <gtest/gtest.h>

#include <fstream>

#include "fake/temporary_folder.hpp"
#include "samples.hpp"

namespace vfpass::state {
namespace {

std::string timeOf(int number) {
  return "2026-11-21T09:40:" + std::string(number < 10 ? "0" : "") + std::to_string(number) + "Z";
}

TEST(ReportHistory, ReturnsTheNewestAndDeletesOldReports) {
  const fake::TemporaryFolder folder;
  EXPECT_EQ(latestReport(folder.path(), uuidOf(1)), std::nullopt);
  for (int number = 0; number < 13; ++number) {
    keepReport(folder.path() / "state", uuidOf(1), timeOf(number), std::to_string(number));
  }
  keepReport(folder.path() / "state", uuidOf(2), timeOf(0), "another VM's");
  EXPECT_EQ(latestReport(folder.path() / "state", uuidOf(1)), "12");
  const auto reports = folder.path() / "state" / "reports" / toString(uuidOf(1));
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(reports), {}),
            static_cast<std::ptrdiff_t>(reportsKept));
  EXPECT_FALSE(std::filesystem::exists(reports / (timeOf(2) + ".json")));
}

}  // namespace
}  // namespace vfpass::state
