#include "schedule/shrink.hpp"

#include <algorithm>

namespace vfpass::crash {
namespace {

using Fails = std::function<bool(const Schedule&)>;

// A schedule without an actor's deviations has no others to renumber, so the actor stays, without
// actions.
bool removeAction(Schedule& schedule, const Fails& fails) {
  for (std::size_t actor = 0; actor < schedule.actors.size(); ++actor) {
    for (std::size_t action = schedule.actors[actor].size(); action-- > 0;) {
      Schedule smaller = schedule;
      auto& actions = smaller.actors[actor];
      actions.erase(actions.begin() + static_cast<std::ptrdiff_t>(action));
      if (fails(smaller)) {
        schedule = smaller;
        return true;
      }
    }
  }
  return false;
}

// Halves first, single ones last.
bool removeDeviations(Schedule& schedule, const Fails& fails) {
  const std::size_t all = schedule.deviations.size();
  for (std::size_t length = std::max<std::size_t>(all / 2, 1); all > 0; length /= 2) {
    for (std::size_t at = 0; at < all; at += length) {
      Schedule smaller = schedule;
      const auto begin = smaller.deviations.begin() + static_cast<std::ptrdiff_t>(at);
      smaller.deviations.erase(begin,
                               begin + static_cast<std::ptrdiff_t>(std::min(length, all - at)));
      if (fails(smaller)) {
        schedule = smaller;
        return true;
      }
    }
    if (length == 1) {
      break;
    }
  }
  return false;
}

}  // namespace

Schedule shrink(Schedule schedule, const Fails& fails) {
  while (removeDeviations(schedule, fails) || removeAction(schedule, fails)) {
  }
  return schedule;
}

}  // namespace vfpass::crash
