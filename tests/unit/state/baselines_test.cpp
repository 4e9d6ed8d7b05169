#include "vfpass/state/verification_records.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>

#include "fake/temporary_folder.hpp"

namespace vfpass::state {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

PciAddress at(const char* address) { return *parsePciAddress(address); }

TEST(BaselinesTest, KeepsOneBaselineForEachPfForRootOnly) {
  const fake::TemporaryFolder folder;
  keepBaseline(folder.path(), at("0000:81:00.0"), "second");
  keepBaseline(folder.path(), at("0000:03:00.0"), "earlier");
  keepBaseline(folder.path(), at("0000:03:00.0"), "first");
  EXPECT_THAT(keptBaselines(folder.path()), ElementsAre("first", "second"));
  struct stat status {};
  ASSERT_EQ(::stat((folder.path() / "baselines" / "0000:03:00.0.json").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777U, 0600U);
}

TEST(BaselinesTest, IgnoresWhatIsNoBaseline) {
  const fake::TemporaryFolder folder;
  EXPECT_THAT(keptBaselines(folder.path()), IsEmpty());
  keepBaseline(folder.path(), at("0000:03:00.0"), "kept");
  std::ofstream(folder.path() / "baselines" / "0000:81:00.0.new") << "half";
  std::ofstream(folder.path() / "baselines" / "0000:82:00.0.json")
      << std::string(largestBaseline + 1, ' ');
  EXPECT_THAT(keptBaselines(folder.path()), ElementsAre("kept"));
}

}  // namespace
}  // namespace vfpass::state
