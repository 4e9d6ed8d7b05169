#include "vfpass/agent/probe_program.hpp"

#include <array>
#include <chrono>
#include <csignal>
#include <nlohmann/json.hpp>
#include <random>
#include <sstream>
#include <thread>
#include <utility>

#include "vfpass/agent/guest_scripts.hpp"
#include "vfpass/agent/reply.hpp"
#include "vfpass/base/bounded_read.hpp"
#include "vfpass/base/json_reader.hpp"
#include "vfpass/base/text.hpp"

namespace vfpass::agent {
namespace {

using Json = nlohmann::json;

constexpr int knownProtocol = 1;
constexpr std::size_t largestProbe = std::size_t{64} << 20U;
// Paths of a package in the guest.
constexpr std::array installedProbes = {"/usr/libexec/vfpass/vfpass-probe",
                                        "/usr/lib/vfpass/vfpass-probe"};

// Variable data is passed as arguments, so that the shell never interprets it. Through a shell, a
// missing or non-executable file is an exit code, not an error of the agent.
constexpr const char* execScript = R"(exec "$0" "$@")";
// $0: the probe, $1: its SHA-256, or empty for a probe that the guest's administrator installed,
// $2: `hello`.
constexpr const char* helloScript = R"sh(
[ -e "$0" ] || [ -h "$0" ] || exit 127
trusted_directory "${0%/*}"
trusted_entry "$0" last
[ -f "$0" ] || refuse "$0 is not a file"
[ -z "$1" ] || has_content "$0" "$1" || refuse "$0 has unexpected content"
exec "$0" "$2"
)sh";
// $0: the directory, $1: the file to fill. Removes other builds of the probe.
constexpr const char* createScript = R"sh(
umask 077
require sha256sum
trusted_directory "$0" make
rm -f "$0"/vfpass-probe-*
new_file "$1" 0700
)sh";
// $0: the filled file, $1: the probe, $2: its SHA-256, $3: `hello`.
constexpr const char* finishScript = R"sh(
has_content "$0" "$2" || { rm -f "$0"; refuse "$0 was changed while it was written"; }
mv -f "$0" "$1" || exit 1
exec "$1" "$3"
)sh";

// Empty if the probe runs and speaks our protocol, otherwise the reason why not.
std::string findProblem(const ExecResult& result) {
  constexpr int notExecutable = 126;
  constexpr int missing = 127;
  if (result.exitCode == missing) {
    return "not found";
  }
  if (result.exitCode == untrusted) {
    return "not trusted: " + firstLine(result.err);
  }
  if (result.exitCode == toolMissing) {
    return firstLine(result.err);
  }
  if (result.exitCode != 0) {
    return (result.exitCode == notExecutable ? "not executable: " : "does not start: ") +
           firstLine(result.err);
  }
  const Json hello = parseReply(result.out);
  return JsonReader(hello)["protocol"].json() == knownProtocol ? ""
                                                               : "incompatible protocol version";
}

// Errors count as "no": if the agent is gone, the caller reports the problem that came first.
bool canRun(Agent& agent, const std::string& path) {
  try {
    return findProblem(runShell(agent, withTrust(helloScript), {path, "", "hello"})).empty();
  } catch (const AgentUnavailable&) {
    return false;
  }
}

std::string remedyFor(const ExecResult& result) {
  return result.exitCode == toolMissing
             ? "install that program in the guest"
             : "choose another directory that only root can write, with --guest-folder";
}

// Returns the same as findProblem().
std::string push(Agent& agent, const ProbeFile& file, const std::string& folder,
                 const Agent::Progress& progress) {
  const std::string path = folder + "/" + file.name;
  const std::string draft = path + ".new";
  agent.requireFileWriting();
  const ExecResult made = runShell(agent, withTrust(createScript), {folder, draft});
  if (made.exitCode != 0) {
    throw AgentUnavailable(
        "cannot create " + printable(draft) + " in the guest: " + firstLine(made.err),
        remedyFor(made));
  }
  agent.fillFile(draft, file.content, progress);
  return findProblem(
      runShell(agent, withTrust(finishScript), {draft, path, sha256(file.content), "hello"}));
}

// The probe's own limit (src/probe/channel/channel.hpp), plus the newline.
constexpr std::size_t longestLine = (std::size_t{64} << 10U) + 1;
constexpr int notYet = 3;

// The name is random: mkdir fails only if somebody else created the directory.
constexpr const char* createDirectoryScript = R"sh(
umask 077
trusted_directory "${0%/*}" make
mkdir "$0"
)sh";

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

ProbeFile readProbeFile(const std::string& path) {
  std::string reason = "the file is empty";
  try {
    std::string content = readBoundedFile(path, largestProbe);
    if (!content.empty()) {
      std::string name = "vfpass-probe-" + sha256(content).substr(0, 16);
      return {std::move(content), std::move(name)};
    }
  } catch (const ReadRefused& refused) {
    reason = refused.what();
  }
  throw Error("cannot read the probe from " + printable(path) + ": " + reason,
              "install vfpass completely, or name the probe with --probe FILE");
}

PlacedProbe placeProbe(Agent& agent, const ProbeFile& file, const std::string& folder,
                       const Agent::Progress& progress) {
  const std::string path = folder + "/" + file.name;
  const ExecResult present =
      runShell(agent, withTrust(helloScript), {path, sha256(file.content), "hello"});
  std::string reason = findProblem(present);
  if (reason.empty()) {
    return {path, false};
  }
  std::string remedy =
      "check that the directory is not mounted noexec and that SELinux does not confine the agent, "
      "or choose another directory with --guest-folder";
  try {
    reason = push(agent, file, folder, progress);
    if (reason.empty()) {
      return {path, true};
    }
  } catch (const AgentUnavailable& error) {
    reason = error.what();
    remedy = error.remedy();
  }
  for (const char* installed : installedProbes) {
    if (canRun(agent, installed)) {
      return {installed, false};
    }
  }
  throw AgentUnavailable(
      "cannot run the probe in the guest from " + printable(folder) + ": " + reason,
      remedy + "; or install vfpass-probe in the guest as " + installedProbes[0]);
}

namespace {

constexpr int afterSignals = 128;  // as in ExecResult::exitCode

std::string signalText(int exitCode) {
  return exitCode > afterSignals
             ? " (killed by signal " + std::to_string(exitCode - afterSignals) + ")"
             : "";
}

// No program and no fault of its own sends itself this signal.
std::string killedRemedy(int exitCode) {
  return exitCode == afterSignals + SIGKILL
             ? "look for the OOM killer in the guest's kernel log, and for who else kills programs "
               "there; then "
             : "";
}

}  // namespace

Json probeDocument(const PlacedProbe& probe, const ExecResult& result) {
  Json document = result.out.empty() ? Json() : parseReply(result.out);
  if (!document.is_object()) {
    throw AgentUnavailable(
        "the probe exited with code " + std::to_string(result.exitCode) +
            signalText(result.exitCode) + " and wrote no report: " + firstLine(result.err),
        killedRemedy(result.exitCode) + "run it by hand in the guest: " + printable(probe.path));
  }
  return document;
}

Json runProbe(Agent& agent, const PlacedProbe& probe, const std::vector<std::string>& arguments) {
  std::vector<std::string> all{probe.path};
  all.insert(all.end(), arguments.begin(), arguments.end());
  return probeDocument(probe, runShell(agent, execScript, all));
}

std::string randomName() {
  std::random_device random;
  std::ostringstream text;
  for (int word = 0; word < 4; ++word) {
    text << std::hex << random();
  }
  return text.str();
}

ExchangeEnd::ExchangeEnd(Agent& agent, const PlacedProbe& probe, std::string folder,
                         std::vector<std::string> arguments)
    : agent_(agent), folder_(std::move(folder)) {
  const ExecResult made = runShell(agent_, withTrust(createDirectoryScript), {folder_});
  if (made.exitCode != 0) {
    throw AgentUnavailable(
        "cannot create directory " + printable(folder_) + " in the guest: " + firstLine(made.err),
        "choose another directory that only root can write, with --guest-folder");
  }
  arguments.insert(arguments.begin(), {"-c", execScript, probe.path});
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
