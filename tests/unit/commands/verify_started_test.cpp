#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <set>
#include <stdexcept>
#include <utility>

#include "fake/temporary_folder.hpp"
#include "verification.hpp"
#include "vfpass/state/verification_records.hpp"

namespace vfpass::commands {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;
using testing::UnorderedElementsAre;

Uuid vm(int number) {
  const std::string digits = std::to_string(number);
  return *parseUuid("00000000-0000-0000-0000-" + std::string(12 - digits.size(), '0') + digits);
}

class StartedQueueTest : public testing::Test {
 protected:
  StartedQueueTest() {
    work.start = [this](const Uuid& domain) {
      started.push_back(domain);
      running.push_back(domain);
      mostRunning = std::max(mostRunning, running.size());
    };
    work.wait = [this]() -> std::optional<EndedVerification> {
      if (stopRequested) {
        throw std::runtime_error("stopped");
      }
      // Those that hang end when no other is left.
      auto ended =
          std::ranges::find_if(running, [this](auto& each) { return !hangs.contains(each); });
      ended = ended == running.end() ? running.begin() : ended;
      const Uuid domain = *ended;
      running.erase(ended);
      verified.push_back(domain);
      return EndedVerification{domain, !crashes};
    };
    work.giveUp = [this](const Uuid& domain, const std::string&) { givenUp.push_back(domain); };
  }
  void run() { verifyStartedVms(folder.path(), work); }
  [[nodiscard]] std::vector<state::StartedMark> marks() const {
    return state::startedMarks(folder.path());
  }

  fake::TemporaryFolder folder;
  StartedWork work;
  std::set<Uuid> hangs;
  bool crashes = false;
  bool stopRequested = false;
  std::vector<Uuid> started;
  std::deque<Uuid> running;
  std::size_t mostRunning = 0;
  std::vector<Uuid> verified;
  std::vector<Uuid> givenUp;
};

TEST_F(StartedQueueTest, GuestThatHangsDelaysNoOther) {
  state::markStarted(folder.path(), vm(1));
  hangs.insert(vm(1));
  for (int number = 2; number < 6; ++number) {
    state::markStarted(folder.path(), vm(number));
  }
  run();
  ASSERT_THAT(verified, SizeIs(5));
  EXPECT_EQ(verified.back(), vm(1));
  EXPECT_THAT(marks(), IsEmpty());
}

TEST_F(StartedQueueTest, VmThatStartsMeanwhileIsNotDelayedEither) {
  state::markStarted(folder.path(), vm(1));
  hangs.insert(vm(1));
  const auto start = work.start;
  work.start = [&](const Uuid& domain) {
    start(domain);
    if (domain == vm(1)) {
      state::markStarted(folder.path(), vm(2));
    }
  };
  const auto wait = work.wait;
  bool first = true;
  work.wait = [&]() -> std::optional<EndedVerification> {
    return std::exchange(first, false) ? std::nullopt : wait();
  };
  run();
  EXPECT_THAT(verified, ElementsAre(vm(2), vm(1)));
}

TEST_F(StartedQueueTest, NumberOfVerificationsAtTheSameTimeIsBounded) {
  for (int number = 0; number < 50; ++number) {
    state::markStarted(folder.path(), vm(number));
  }
  run();
  EXPECT_THAT(verified, SizeIs(50));
  EXPECT_EQ(mostRunning, mostStarted);
}

TEST_F(StartedQueueTest, MarkStaysUntilVerificationHasEnded) {
  state::markStarted(folder.path(), vm(1));
  std::vector<state::StartedMark> during;
  const auto wait = work.wait;
  work.wait = [&] {
    during = marks();
    return wait();
  };
  run();
  EXPECT_THAT(during, ElementsAre(state::StartedMark{vm(1), 1}));
  EXPECT_THAT(marks(), IsEmpty());
}

TEST_F(StartedQueueTest, RetriesAfterCrashAndFinallyGivesUp) {
  state::markStarted(folder.path(), vm(1));
  crashes = true;
  run();
  EXPECT_THAT(started, SizeIs(mostAttempts));
  EXPECT_THAT(givenUp, ElementsAre(vm(1)));
  EXPECT_THAT(marks(), IsEmpty());
}

TEST_F(StartedQueueTest, StopRequestKeepsTheMarks) {
  state::markStarted(folder.path(), vm(1));
  state::markStarted(folder.path(), vm(2));
  stopRequested = true;
  EXPECT_THROW(run(), std::runtime_error);
  EXPECT_THAT(marks(),
              UnorderedElementsAre(state::StartedMark{vm(1), 1}, state::StartedMark{vm(2), 1}));
  stopRequested = false;
  run();
  EXPECT_THAT(verified, testing::IsSupersetOf({vm(1), vm(2)}));
}

TEST_F(StartedQueueTest, StartDuringVerificationIsVerifiedAgain) {
  state::markStarted(folder.path(), vm(1));
  bool first = true;
  const auto start = work.start;
  work.start = [&](const Uuid& domain) {
    start(domain);
    if (std::exchange(first, false)) {
      state::markStarted(folder.path(), domain);
    }
  };
  run();
  EXPECT_THAT(verified, ElementsAre(vm(1), vm(1)));
  EXPECT_EQ(mostRunning, 1U) << "one after the other";
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

}  // namespace vfpass::commands
