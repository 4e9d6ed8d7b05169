#include "vfpass/session/started_queue.hpp"

#include <map>

#include "vfpass/state/started_marks.hpp"

namespace vfpass::session {
namespace {

class StartedQueue {
 public:
  StartedQueue(const std::filesystem::path& runDirectory, const StartedWork& work)
      : runDirectory_(runDirectory), work_(work) {}

  /// False when nothing is left.
  bool step() {
    state::removeStrayMarks(runDirectory_);
    for (const state::StartedMark& mark : state::startedMarks(runDirectory_)) {
      treat(mark);
    }
    if (running_.empty()) {
      return !state::startedMarks(runDirectory_).empty();
    }
    if (const auto ended = work_.wait()) {
      finish(*ended);
    }
    return true;
  }

 private:
  // A VM that starts again during its verification is verified again afterwards.
  void treat(const state::StartedMark& mark) {
    if (running_.contains(mark.domain)) {
      return;
    }
    if (mark.attempts >= mostAttempts) {
      work_.giveUp(mark.domain,
                   "its verification was interrupted " + std::to_string(mark.attempts) + " times");
      state::removeMark(runDirectory_, mark);
    } else if (running_.size() < mostStarted) {
      const auto begun = state::beginAttempt(runDirectory_, mark);
      work_.start(mark.domain);
      running_.emplace(mark.domain, begun);
    }
  }

  void finish(const EndedVerification& ended) {
    const auto found = running_.find(ended.domain);
    if (found != running_.end() && ended.completed) {
      state::removeMark(runDirectory_, found->second);
    }
    running_.erase(ended.domain);
  }

  const std::filesystem::path& runDirectory_;
  const StartedWork& work_;
  std::map<Uuid, state::StartedMark> running_;
};

}  // namespace

void verifyStartedVms(const std::filesystem::path& runDirectory, const StartedWork& work) {
  StartedQueue queue(runDirectory, work);
  while (queue.step()) {
  }
}

}  // namespace vfpass::session
