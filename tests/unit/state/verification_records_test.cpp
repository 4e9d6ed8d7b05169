#include "vfpass/state/verification_records.hpp"

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
  EXPECT_FALSE(latestReport(folder.path(), uuidOf(1)));
  for (int number = 0; number < 13; ++number) {
    keepReport(folder.path() / "state", uuidOf(1), timeOf(number), std::to_string(number));
  }
  keepReport(folder.path() / "state", uuidOf(2), timeOf(0), "another VM's");
  EXPECT_EQ(latestReport(folder.path() / "state", uuidOf(1))->text, "12");
  const auto reports = folder.path() / "state" / "reports" / toString(uuidOf(1));
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(reports), {}),
            static_cast<std::ptrdiff_t>(reportsKept));
  EXPECT_FALSE(std::filesystem::exists(reports / ("00000003-" + timeOf(2) + ".json")));
  EXPECT_TRUE(std::filesystem::exists(reports / ("00000013-" + timeOf(12) + ".json")));
}

TEST(ReportHistory, KeepsTheNewestReportAfterTheClockWasSetBack) {
  const fake::TemporaryFolder folder;
  const auto reports = folder.path() / "state" / "reports" / toString(uuidOf(1));
  std::filesystem::create_directories(reports);
  std::ofstream(reports / "2031-01-01T00:00:00Z.json") << "of an earlier version";
  for (int number = 0; number < 10; ++number) {
    keepReport(folder.path() / "state", uuidOf(1), timeOf(40 - number), std::to_string(number));
  }
  EXPECT_EQ(latestReport(folder.path() / "state", uuidOf(1))->text, "9");
  const auto kept = keptReports(folder.path() / "state", uuidOf(1));
  ASSERT_EQ(kept.size(), reportsKept);
  EXPECT_EQ(kept.back().text, "0");
}

TEST(ReportHistory, NamesReportThatCannotBeRead) {
  const fake::TemporaryFolder folder;
  const auto reports = folder.path() / "state" / "reports" / toString(uuidOf(1));
  keepReport(folder.path() / "state", uuidOf(1), timeOf(0), "small");
  keepReport(folder.path() / "state", uuidOf(1), timeOf(1), "");
  std::filesystem::resize_file(reports / ("00000002-" + timeOf(1) + ".json"), largestReport + 1);
  const auto large = latestReport(folder.path() / "state", uuidOf(1));
  ASSERT_TRUE(large);
  EXPECT_EQ(large->file, reports / ("00000002-" + timeOf(1) + ".json"));
  EXPECT_EQ(large->problem, "larger than 8 MiB");
  std::filesystem::create_directory(reports / ("00000003-" + timeOf(2) + ".json"));
  EXPECT_NE(latestReport(folder.path() / "state", uuidOf(1))->problem, "");
}

}  // namespace
}  // namespace vfpass::state
