#include "vfpass/session/started_queue.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <stdexcept>

#include "fake/temporary_folder.hpp"
#include "vfpass/state/started_marks.hpp"

namespace vfpass::session {
namespace {

using std::chrono::seconds;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

Uuid vm(int number) {
  return *parseUuid("00000000-0000-0000-0000-00000000000" + std::to_string(number));
}

class StartedQueueTest : public testing::Test {
 protected:
  StartedQueueTest() {
    work.isReady = [this](const Uuid& domain) { return !mute.contains(domain); };
    work.verify = [this](const Uuid& domain) {
      if (crashes) {
        throw std::runtime_error("killed");
      }
      verified.push_back(domain);
      times.push_back(clock);
    };
    work.giveUp = [this](const Uuid& domain, const std::string&) { givenUp.push_back(domain); };
    work.now = [this] { return std::chrono::steady_clock::time_point(clock); };
    work.pause = [this] { clock += seconds(60); };
  }
  void run() { verifyStartedVms(folder.path(), seconds(600), work); }
  [[nodiscard]] std::vector<state::StartedMark> marks() const {
    return state::startedMarks(folder.path());
  }

  fake::TemporaryFolder folder;
  StartedWork work;
  std::set<Uuid> mute;
  bool crashes = false;
  seconds clock{0};
  std::vector<Uuid> verified;
  std::vector<seconds> times;
  std::vector<Uuid> givenUp;
};

TEST_F(StartedQueueTest, MuteGuestsDelayNeitherOthersNorEachOther) {
  for (int number = 0; number < 9; ++number) {
    state::markStarted(folder.path(), vm(number));
    if (number != 8) {
      mute.insert(vm(number));
    }
  }
  run();
  ASSERT_EQ(verified.size(), 9U) << "a mute guest is verified too, and its report says so";
  EXPECT_EQ(verified.front(), vm(8));
  EXPECT_EQ(times.front(), seconds(0));
  EXPECT_EQ(times.back(), seconds(600)) << "all wait at the same time";
  EXPECT_THAT(marks(), IsEmpty());
}

TEST_F(StartedQueueTest, MarkStaysUntilVerificationHasEnded) {
  state::markStarted(folder.path(), vm(1));
  std::vector<state::StartedMark> during;
  const auto verify = work.verify;
  work.verify = [&](const Uuid& domain) {
    during = marks();
    verify(domain);
  };
  run();
  EXPECT_THAT(during, ElementsAre(state::StartedMark{vm(1), 1}));
  EXPECT_THAT(marks(), IsEmpty());
}

TEST_F(StartedQueueTest, RetriesAfterCrashAndFinallyGivesUp) {
  state::markStarted(folder.path(), vm(1));
  crashes = true;
  for (unsigned attempt = 1; attempt <= mostAttempts; ++attempt) {
    EXPECT_THROW(run(), std::runtime_error);
    EXPECT_THAT(marks(), ElementsAre(state::StartedMark{vm(1), attempt}));
  }
  run();
  EXPECT_THAT(givenUp, ElementsAre(vm(1)));
  EXPECT_THAT(marks(), IsEmpty());
}

TEST_F(StartedQueueTest, CrashOfOneVerificationDoesNotLoseOthers) {
  state::markStarted(folder.path(), vm(1));
  state::markStarted(folder.path(), vm(2));
  crashes = true;
  EXPECT_THROW(run(), std::runtime_error);
  crashes = false;
  run();
  EXPECT_THAT(verified, UnorderedElementsAre(vm(1), vm(2)));
}

TEST_F(StartedQueueTest, StartDuringVerificationIsVerifiedAgain) {
  state::markStarted(folder.path(), vm(1));
  bool first = true;
  const auto verify = work.verify;
  work.verify = [&](const Uuid& domain) {
    if (first) {
      first = false;
      state::markStarted(folder.path(), domain);
    }
    verify(domain);
  };
  run();
  EXPECT_THAT(verified, ElementsAre(vm(1), vm(1)));
  EXPECT_THAT(marks(), IsEmpty());
}

TEST_F(StartedQueueTest, RemovesFilesThatAreNoMarks) {
  state::markStarted(folder.path(), vm(1));
  const auto stray = folder.path() / "started" / "not-a-uuid";
  std::filesystem::copy_file(folder.path() / "started" / toString(vm(1)), stray);
  run();
  EXPECT_FALSE(std::filesystem::exists(stray));
}

}  // namespace
}  // namespace vfpass::session
