#include "vfpass/session/started_queue.hpp"

#include <map>

#include "vfpass/state/started_marks.hpp"

namespace vfpass::session {
namespace {

using Clock = std::chrono::steady_clock;

class StartedQueue {
 public:
  StartedQueue(const std::filesystem::path& runDirectory, std::chrono::seconds wait,
               const StartedWork& work)
      : runDirectory_(runDirectory), wait_(wait), work_(work) {}

  /// False when no VM was ready.
  bool verifyReady(const std::vector<state::StartedMark>& marks) {
    bool any = false;
    for (const state::StartedMark& mark : marks) {
      any = treat(mark) || any;
    }
    return any;
  }

 private:
  bool treat(const state::StartedMark& mark) {
    if (mark.attempts >= mostAttempts) {
      work_.giveUp(mark.domain,
                   "its verification was interrupted " + std::to_string(mark.attempts) + " times");
      end(mark);
      return true;
    }
    const auto since = since_.try_emplace(mark.domain, work_.now()).first->second;
    if (work_.now() < since + wait_ && !work_.isReady(mark.domain)) {
      return false;
    }
    const auto begun = state::beginAttempt(runDirectory_, mark);
    work_.verify(mark.domain);
    end(begun);
    return true;
  }

  void end(const state::StartedMark& mark) {
    state::removeMark(runDirectory_, mark);
    since_.erase(mark.domain);
  }

  const std::filesystem::path& runDirectory_;
  std::chrono::seconds wait_;
  const StartedWork& work_;
  std::map<Uuid, Clock::time_point> since_;
};

}  // namespace

void verifyStartedVms(const std::filesystem::path& runDirectory, std::chrono::seconds wait,
                      const StartedWork& work) {
  StartedQueue queue(runDirectory, wait, work);
  for (;;) {
    state::removeStrayMarks(runDirectory);
    const auto marks = state::startedMarks(runDirectory);
    if (marks.empty()) {
      return;
    }
    if (!queue.verifyReady(marks)) {
      work.pause();
    }
  }
}

}  // namespace vfpass::session
