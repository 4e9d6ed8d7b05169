#include "vfpass/guest/probe_program.hpp"

#include <array>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "reply.hpp"
#include "run_shell.hpp"
#include "sha256.hpp"
#include "trust_scripts.hpp"
#include "vfpass/base/text.hpp"

namespace vfpass::guest {
namespace {

using Json = nlohmann::json;

constexpr int knownProtocol = 1;
constexpr std::size_t largestProbe = std::size_t{64} << 20U;
// Where a package in the guest would have it.
constexpr std::array installedProbes = {"/usr/libexec/vfpass/vfpass-probe",
                                        "/usr/lib/vfpass/vfpass-probe"};

// Constant text; what varies comes as $1, $2: no data is ever read as shell. With a shell between,
// a file that is missing or may not be run is an exit code and not an error of the agent.
constexpr const char* runScript = R"(exec "$0" "$@")";
// $0: the probe, $1: its SHA-256, or empty for a file that the guest's administrator put there, $2:
// `hello`.
constexpr const char* helloScript = R"sh(
[ -e "$0" ] || [ -h "$0" ] || exit 127
trusted_directory "${0%/*}"
trusted_entry "$0" last
[ -f "$0" ] || refuse "$0 is not a file"
[ -z "$1" ] || has_content "$0" "$1" || refuse "$0 has unexpected content"
exec "$0" "$2"
)sh";
// $0: the directory, $1: the file to fill. Other builds of the probe go.
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

// Empty when it runs and speaks our protocol; otherwise why not.
std::string objection(const ExecResult& result) {
  constexpr int mayNotBeRun = 126;
  constexpr int missing = 127;
  if (result.exitCode == missing) {
    return "not there";
  }
  if (result.exitCode == untrusted) {
    return "not trusted: " + firstLine(result.err);
  }
  if (result.exitCode == toolMissing) {
    return firstLine(result.err);
  }
  if (result.exitCode != 0) {
    return (result.exitCode == mayNotBeRun ? "may not be run: " : "does not start: ") +
           firstLine(result.err);
  }
  const Json hello = parseReply(result.out);
  const auto protocol = hello.is_object() ? hello.find("protocol") : hello.end();
  const bool known = hello.is_object() && protocol != hello.end() && *protocol == knownProtocol;
  return known ? std::string() : "speaks another protocol";
}

// An agent that has gone meanwhile has no probe either: what went wrong before is what is told.
bool canRun(Agent& agent, const std::string& path) {
  try {
    return objection(runShell(agent, withTrust(helloScript), {path, "", "hello"})).empty();
  } catch (const AgentUnavailable&) {
    return false;
  }
}

std::string remedyFor(const ExecResult& result) {
  return result.exitCode == toolMissing
             ? "install that program in the guest"
             : "name another directory with --guest-folder, one that only root can write";
}

// As objection().
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
  return objection(
      runShell(agent, withTrust(finishScript), {draft, path, sha256(file.content), "hello"}));
}

}  // namespace

ProbeFile readProbeFile(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  std::ostringstream content;
  content << stream.rdbuf();
  if (!stream || content.str().empty() || content.str().size() > largestProbe) {
    throw Error("cannot read the probe from " + path,
                "install vfpass whole, or name it: --probe FILE");
  }
  return {content.str(), "vfpass-probe-" + sha256(content.str()).substr(0, 16)};
}

PlacedProbe placeProbe(Agent& agent, const ProbeFile& file, const std::string& folder,
                       const Agent::Progress& progress) {
  const std::string path = folder + "/" + file.name;
  const ExecResult present =
      runShell(agent, withTrust(helloScript), {path, sha256(file.content), "hello"});
  std::string reason = objection(present);
  if (reason.empty()) {
    return {path, false};
  }
  std::string remedy =
      "is the folder mounted noexec, or does SELinux confine the agent? Name another one with "
      "--guest-folder";
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
      "the probe cannot run in the guest from " + printable(folder) + ": " + reason,
      remedy + "; or install vfpass-probe in the guest as " + installedProbes[0]);
}

Json probeDocument(const PlacedProbe& probe, const ExecResult& result) {
  Json document = result.out.empty() ? Json() : parseReply(result.out);
  if (!document.is_object()) {
    throw AgentUnavailable("the probe ended with exit code " + std::to_string(result.exitCode) +
                               " and without a report: " + firstLine(result.err),
                           "run it by hand in the guest: " + printable(probe.path));
  }
  return document;
}

Json runProbe(Agent& agent, const PlacedProbe& probe, const std::vector<std::string>& arguments) {
  std::vector<std::string> all{probe.path};
  all.insert(all.end(), arguments.begin(), arguments.end());
  return probeDocument(probe, runShell(agent, runScript, all));
}

}  // namespace vfpass::guest
