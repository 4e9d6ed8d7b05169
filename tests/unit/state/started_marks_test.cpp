#include "vfpass/state/verification_records.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fake/temporary_folder.hpp"
#include "samples.hpp"

namespace vfpass::state {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

using FileClock = std::filesystem::file_time_type::clock;

class StartedMarksTest : public testing::Test {
 protected:
  [[nodiscard]] std::vector<StartedMark> marks() const { return startedMarks(folder.path()); }

  fake::TemporaryFolder folder;
  Uuid vm = uuidOf(1);
};

TEST_F(StartedMarksTest, RemovesEveryMarkOfOneDomain) {
  markStarted(folder.path(), vm);
  ASSERT_TRUE(beginAttempt(folder.path(), {vm}));
  markStarted(folder.path(), vm);
  markStarted(folder.path(), uuidOf(2));
  removeMarks(folder.path(), vm);
  EXPECT_THAT(marks(), ElementsAre(StartedMark{uuidOf(2)}));
}

TEST_F(StartedMarksTest, KeepsMarkOfStartAfterTheVerificationBegan) {
  markStarted(folder.path(), vm);
  const auto begin = FileClock::now();
  markStarted(folder.path(), vm);
  removeMarks(folder.path(), vm, begin);
  EXPECT_THAT(marks(), ElementsAre(StartedMark{vm})) << "the VM started again";
  removeMarks(folder.path(), vm, FileClock::now());
  EXPECT_THAT(marks(), IsEmpty());
}

TEST_F(StartedMarksTest, MarkThatIsGoneBeginsNoAttempt) {
  markStarted(folder.path(), vm);
  removeMarks(folder.path(), vm);
  EXPECT_FALSE(beginAttempt(folder.path(), {vm}));
}

}  // namespace
}  // namespace vfpass::state
