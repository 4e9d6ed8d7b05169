#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace vfpass::crash {

/// `attach`, `detach`, `recover`, `gc`, `status`: a command; `start`, `stop`: libvirt does so and
/// calls the hook.
struct Action {
  std::string verb;
  std::string vm;  ///< empty for `recover`, `gc` and `status`

  bool operator==(const Action&) const = default;
};

/// Somebody who does one thing after the other: an administrator, libvirt, a timer.
using Actor = std::vector<Action>;

/// What happens at a step other than that the actor who runs goes on.
enum class Turn : char {
  other = '>',      ///< this actor goes on
  kill = '!',       ///< its process is killed
  refuse = 'e',     ///< its request fails
  loseReply = 'l',  ///< its request takes effect, but fails
  power = 'P',      ///< the host loses power
  date = 'd',       ///< somebody sets the date: back for an even number, forward for an odd one
};

struct Deviation {
  long step = 0;
  Turn turn = Turn::other;
  std::size_t actor = 0;  ///< for `date`, the number of a change; 0 for `power`
};

/// One order in which several actors do what they do on a host. It determines a run completely:
/// without a deviation, the actor that runs goes on until it ends or has to wait, and then the
/// first one that can.
struct Schedule {
  std::string host;       ///< the name of a HostSetUp
  std::int64_t tick = 0;  ///< nanoseconds that each request takes
  std::vector<Actor> actors;
  std::vector<Deviation> deviations;  ///< in the order of their steps
};

/// On one line, to be repeated: `vfs 20000 / attach vm0, start vm0 / recover @ 12>1 40!0`.
std::string toText(const Schedule& schedule);
std::string toText(const Action& action);
/// Throws std::invalid_argument.
Schedule parseSchedule(const std::string& text);

}  // namespace vfpass::crash
