#include "exchange.hpp"

#include <chrono>
#include <thread>
#include <utility>

#include "run_shell.hpp"
#include "trust_scripts.hpp"
#include "vfpass/base/text.hpp"

namespace vfpass::guest {
namespace {

// As the probe bounds them (src/probe/channel.hpp), with the newline.
constexpr std::size_t longestLine = (std::size_t{64} << 10U) + 1;
constexpr int notYet = 3;

// Its name is random, so that it exists only if somebody else made it.
constexpr const char* makeFolderScript = R"sh(
umask 077
trusted_directory "${0%/*}" make
mkdir "$0"
)sh";
constexpr const char* launchScript = R"(exec "$0" "$@")";

// $1: the number of the line on our input, 0: none; $2: of the line that is awaited. One round trip
// for both, because each costs two calls of the agent. The probe takes what appears under its name,
// so the line gets that when it is whole. Not every sleep knows fractions.
constexpr const char* passScript = R"(umask 077
cd "$0" || exit 2
if [ "$1" != 0 ]; then cat >unfinished-in && mv -f unfinished-in "in.$1" || exit 2; fi
for pause in 0.05 0.1 0.2 0.4 0.8; do
  [ ! -e "out.$2" ] || break
  sleep $pause 2>/dev/null || sleep 1
done
[ -e "out.$2" ] || exit 3
exec cat "out.$2")";

constexpr const char* removeScript = R"(exec rm -rf "$0")";

}  // namespace

ExchangeEnd::ExchangeEnd(Agent& agent, const PlacedProbe& probe, std::string folder,
                         std::vector<std::string> arguments)
    : agent_(agent), folder_(std::move(folder)) {
  const ExecResult made = runShell(agent_, withTrust(makeFolderScript), {folder_});
  if (made.exitCode != 0) {
    throw AgentUnavailable(
        "cannot create directory " + printable(folder_) + " in the guest: " + firstLine(made.err),
        "name another one with --guest-folder, one that only root can write");
  }
  arguments.insert(arguments.begin(), {"-c", launchScript, probe.path});
  arguments.insert(arguments.end(), {"--folder", folder_});
  try {
    process_ = agent_.start("/bin/sh", arguments);
  } catch (...) {
    agent_.startAndForget("/bin/sh", {"-c", removeScript, folder_});
    throw;
  }
}

ExchangeEnd::~ExchangeEnd() {
  if (!result_) {
    agent_.stop(process_);
  }
  agent_.startAndForget("/bin/sh", {"-c", removeScript, folder_});
}

std::optional<std::string> ExchangeEnd::pass(const std::optional<std::string>& line) {
  const int number = line ? ++delivered_ : 0;
  const ExecResult result = runShell(
      agent_, passScript, {folder_, std::to_string(number), std::to_string(collected_ + 1)},
      line.value_or(std::string()));
  if (result.exitCode == notYet) {
    return std::nullopt;
  }
  if (result.exitCode != 0) {
    throw AgentUnavailable(
        "the guest does not hand on what its probe says: " + firstLine(result.err),
        "is there room in " + printable(folder_) + "?");
  }
  if (result.out.size() > longestLine) {
    throw AgentUnavailable("the guest's probe says more than a probe does",
                           "is it this build of the probe that runs?");
  }
  ++collected_;
  return result.out;
}

bool ExchangeEnd::ended() {
  if (!result_) {
    result_ = agent_.poll(process_);
  }
  return result_.has_value();
}

void carryLines(ExchangeEnd& initiator, ExchangeEnd& target) {
  ExchangeEnd* const ends[] = {&initiator, &target};
  std::optional<std::string> waiting[2];  // for each end, what it has not been given yet
  bool closed[2] = {false, false};
  int turn = 0;  // the initiator begins, and each line is answered by the other side
  while (!closed[0] || !closed[1]) {
    const int other = 1 - turn;
    if (closed[turn]) {
      turn = other;
      continue;
    }
    auto line = ends[turn]->pass(std::exchange(waiting[turn], std::nullopt));
    if (!line && ends[turn]->ended()) {
      // It may have said its last between our two looks; killed, it left no empty line.
      line = ends[turn]->pass(std::nullopt).value_or(std::string());
    }
    if (line) {
      closed[turn] = line->empty();
      waiting[other] = std::move(line);
    }
    turn = other;
  }
  // Both have closed and are about to end. The agent's patience bounds this.
  while (!initiator.ended() || !target.ended()) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
}

}  // namespace vfpass::guest
