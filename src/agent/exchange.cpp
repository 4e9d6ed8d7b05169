#include "vfpass/agent/exchange.hpp"

#include <chrono>
#include <thread>
#include <utility>

#include "vfpass/agent/run_shell.hpp"
#include "vfpass/agent/trust_scripts.hpp"
#include "vfpass/base/text.hpp"

namespace vfpass::agent {
namespace {

// The probe's own limit (src/probe/channel/channel.hpp), plus the newline.
constexpr std::size_t longestLine = (std::size_t{64} << 10U) + 1;
constexpr int notYet = 3;

// The name is random: mkdir fails only if somebody else created the directory.
constexpr const char* createDirectoryScript = R"sh(
umask 077
trusted_directory "${0%/*}" make
mkdir "$0"
)sh";
constexpr const char* launchScript = R"(exec "$0" "$@")";

// $1: number of the line on standard input, 0: none; $2: number of the expected line. One script
// does both, because each costs two agent commands. The probe reads a line file as soon as it
// exists, so the file is renamed to its name once complete. Not every sleep accepts fractions.
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
  const ExecResult made = runShell(agent_, withTrust(createDirectoryScript), {folder_});
  if (made.exitCode != 0) {
    throw AgentUnavailable(
        "cannot create directory " + printable(folder_) + " in the guest: " + firstLine(made.err),
        "choose another directory that only root can write, with --guest-folder");
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
        "cannot read the probe's output from the guest: " + firstLine(result.err),
        "check for free space below " + printable(folder_) + " in the guest");
  }
  if (result.out.size() > longestLine) {
    throw AgentUnavailable("the probe in the guest sent a line longer than 64 KiB",
                           "check that the guest runs the probe of this vfpass build");
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

void relayLines(ExchangeEnd& initiator, ExchangeEnd& target) {
  ExchangeEnd* const ends[] = {&initiator, &target};
  std::optional<std::string> waiting[2];  // for each end, the line not delivered to it yet
  bool closed[2] = {false, false};
  int turn = 0;  // the initiator begins, and the other side answers each line
  while (!closed[0] || !closed[1]) {
    const int other = 1 - turn;
    if (closed[turn]) {
      turn = other;
      continue;
    }
    auto line = ends[turn]->pass(std::exchange(waiting[turn], std::nullopt));
    if (!line && ends[turn]->ended()) {
      // The probe may have written its last line before it ended; a killed one leaves no empty
      // line.
      line = ends[turn]->pass(std::nullopt).value_or(std::string());
    }
    if (line) {
      closed[turn] = line->empty();
      waiting[other] = std::move(line);
    }
    turn = other;
  }
  // Both have closed and are about to exit. The agent's timeout bounds this loop.
  while (!initiator.ended() || !target.ended()) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
}

}  // namespace vfpass::agent
