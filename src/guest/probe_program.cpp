#include "vfpass/guest/probe_program.hpp"

#include <nettle/sha2.h>

#include <array>
#include <cstdint>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "reply.hpp"
#include "run_shell.hpp"
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
constexpr const char* makeFolderScript = R"(mkdir -p "$0" && rm -f "$0"/vfpass-probe-*)";
constexpr const char* finishScript = R"(chmod 0755 "$0" && mv -f "$0" "$1")";

std::string shortHash(const std::string& content) {
  sha256_ctx context;
  sha256_init(&context);
  sha256_update(&context, content.size(), reinterpret_cast<const std::uint8_t*>(content.data()));
  std::array<std::uint8_t, 8> digest{};
  sha256_digest(&context, digest.size(), digest.data());
  std::string text;
  for (const std::uint8_t byte : digest) {
    constexpr const char* digits = "0123456789abcdef";
    text += {digits[byte >> 4U], digits[byte & 15U]};
  }
  return text;
}

// Empty when it runs and speaks our protocol; otherwise why not.
std::string objection(Agent& agent, const std::string& path) {
  const ExecResult result = runShell(agent, runScript, {path, "hello"});
  constexpr int mayNotBeRun = 126;
  constexpr int missing = 127;
  if (result.exitCode == missing) {
    return "not there";
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
    return objection(agent, path).empty();
  } catch (const AgentUnavailable&) {
    return false;
  }
}

void push(Agent& agent, const ProbeFile& file, const std::string& folder,
          const Agent::Progress& progress) {
  const std::string path = folder + "/" + file.name;
  const ExecResult made = runShell(agent, makeFolderScript, {folder});
  if (made.exitCode != 0) {
    throw AgentUnavailable(
        "the guest cannot have a folder " + printable(folder) + ": " + firstLine(made.err),
        "name another one with --guest-folder");
  }
  agent.writeFile(path + ".new", file.content, progress);
  const ExecResult done = runShell(agent, finishScript, {path + ".new", path});
  if (done.exitCode != 0) {
    throw AgentUnavailable("the probe cannot be put in place in the guest: " + firstLine(done.err),
                           "name another folder with --guest-folder");
  }
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
  return {content.str(), "vfpass-probe-" + shortHash(content.str())};
}

PlacedProbe placeProbe(Agent& agent, const ProbeFile& file, const std::string& folder,
                       const Agent::Progress& progress) {
  const std::string path = folder + "/" + file.name;
  std::string reason = objection(agent, path);
  if (reason.empty()) {
    return {path, false};
  }
  std::string remedy =
      "is the folder mounted noexec, or does SELinux confine the agent? Name another one with "
      "--guest-folder";
  try {
    push(agent, file, folder, progress);
    reason = objection(agent, path);
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
