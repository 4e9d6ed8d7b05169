#include "vfpass/agent/agent.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdint>
#include <iterator>
#include <nlohmann/json.hpp>
#include <thread>

#include "vfpass/agent/guest_scripts.hpp"
#include "vfpass/agent/reply.hpp"
#include "vfpass/base/call_within.hpp"
#include "vfpass/base/default_deadlines.hpp"
#include "vfpass/base/json_reader.hpp"
#include "vfpass/base/text.hpp"

namespace vfpass::agent {
namespace {

using Json = nlohmann::json;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr std::size_t largestOutput = std::size_t{1} << 20U;
// libvirt accepts commands of up to 4 MiB, but a slow guest has to process each within the timeout
// of one call: after a timeout libvirt no longer talks to the agent.
constexpr std::size_t fileChunk = std::size_t{64} << 10U;

// Every command that verify and guest-setup use, so that one error can list all blocked ones.
constexpr std::array usedCommands{"guest-exec", "guest-exec-status", "guest-file-open",
                                  "guest-file-write", "guest-file-close"};

// The setting that has to change in the guest.
std::string remedyFor(const std::string& commands) {
  return "allow " + commands +
         " in the guest: on RHEL and its family remove them from BLACKLIST_RPC (or add them to "
         "--allow-rpcs in FILTER_RPC_ARGS) in /etc/sysconfig/qemu-ga; on Debian and Ubuntu remove "
         "them from block-rpcs (blacklist before 8.1) in /etc/qemu/qemu-ga.conf; then `systemctl "
         "restart qemu-guest-agent`";
}

// libvirt has no error codes for these cases; only the message text tells them apart.
std::string remedyForNoReply(const std::string& domain, std::string_view message) {
  const auto contains = [&](const char* part) {
    return message.find(part) != std::string_view::npos;
  };
  // qemu-ga passes on glib's message, with the reason of execve.
  if (contains("Failed to execute child process") && contains("Permission denied")) {
    return "check the program's mode in the guest; where SELinux confines the agent (RHEL "
           "family), " +
           confinementRemedy();
  }
  if (contains("unable to execute QEMU agent")) {
    return "see the agent's error message";  // the agent replied with an error
  }
  if (contains("domain is not running")) {
    return "virsh resume " + shellArgument(domain);  // the domain exists, but its vCPUs are paused
  }
  if (contains("not available for now")) {  // connected, but it has not replied in time
    return "check the load in the guest and that qemu-guest-agent runs there, then try again";
  }
  return "install and start qemu-guest-agent in the guest, and add the channel "
         "org.qemu.guest_agent.0 to the domain";
}

// As a shell reports it: 128 plus the number of the signal that ended the program. A program of
// which the agent reports neither has failed.
int exitCodeOf(const JsonReader& status) {
  constexpr int largestExitCode = 255;
  constexpr int largestSignal = 64;
  const auto exitCode = status["exitcode"].numberOrNone(largestExitCode);
  const auto signal = status["signal"].numberOrNone(largestSignal);
  return exitCode ? *exitCode : signal ? 128 + *signal : unknownExitCode;
}

// The shell's own context, then the mode: the type may not be allowed to read it. cat appends no
// newline to a context, which may end with a null byte.
constexpr const char* contextScript = R"sh(
context=$(tr -d '\000' </proc/self/attr/current 2>/dev/null) || exit 1
enforce=$(cat /sys/fs/selinux/enforce 2>/dev/null)
echo "$context $enforce"
)sh";

}  // namespace

Agent::Agent(Hypervisor& hypervisor, const Uuid& domain, std::string domainName, seconds timeout,
             Checkpoint checkpoint)
    : hypervisor_(hypervisor),
      domain_(domain),
      name_(std::move(domainName)),
      longestCall_(deadlines::agentCallWithin(timeout)),
      deadline_(Clock::now() + timeout),
      checkpoint_(std::move(checkpoint)) {}

void Agent::allowAtLeast(seconds timeout) {
  deadline_ = std::max(deadline_, Clock::now() + timeout);
}

Agent Agent::withinAtMost(seconds timeout) const {
  Agent copy = *this;
  copy.deadline_ = std::min(deadline_, Clock::now() + timeout);
  return copy;
}

seconds Agent::remaining() const {
  return std::max(std::chrono::ceil<seconds>(deadline_ - Clock::now()), seconds{0});
}

seconds Agent::timeLeft() const {
  const auto left = remaining();
  if (left.count() == 0) {
    throw AgentUnavailable("the guest agent of domain " + printable(name_) + " timed out",
                           "check the load in the guest, then try again");
  }
  return std::min(left, longestCall_);
}

// libvirt's call neither returns at a signal nor while another host's libvirt does not answer.
std::string Agent::ask(const std::string& request) {
  const seconds timeout = timeLeft();
  std::optional<std::string> answer;
  try {
    answer = callWithin(timeout + deadlines::agentSync, checkpoint_,
                        [&hypervisor = hypervisor_, domain = domain_, request, timeout] {
                          return hypervisor.askAgent(domain, request, timeout);
                        });
  } catch (const AgentUnavailable&) {
    throw;
  } catch (const Error& error) {
    throw AgentUnavailable(error.what(), remedyForNoReply(name_, error.what()));
  } catch (...) {  // the checkpoint's: libvirt still waits for this reply
    *interrupted_ = true;
    throw;
  }
  if (!answer) {
    *interrupted_ = true;
    throw AgentUnavailable("libvirt returned no reply of the guest agent of domain " +
                               printable(name_) + " within " +
                               std::to_string((timeout + deadlines::agentSync).count()) + " s",
                           "check libvirt on the VM's host, then try again");
  }
  return *answer;
}

Json Agent::call(const std::string& command, const Json& arguments) {
  Json request{{"execute", command}};
  if (!arguments.is_null()) {
    request["arguments"] = arguments;
  }
  if (checkpoint_) {
    checkpoint_();
  }
  const Json reply = parseReply(ask(request.dump()));
  if (!reply.is_object() || !reply.contains("return")) {
    throw AgentUnavailable("the guest agent of domain " + printable(name_) + " refused " + command,
                           remedyFor(command));
  }
  return reply["return"];
}

Json Agent::call(const std::string& command) { return call(command, nullptr); }

bool Agent::allows(const std::string& command) {
  if (!queried_) {
    const Json info = call("guest-info");
    for (const JsonReader& each : JsonReader(info)["supported_commands"].listOrEmpty()) {
      if (each["enabled"].flagOr(false)) {
        allowed_.insert(each["name"].textOr(""));
      }
    }
    queried_ = true;
  }
  return allowed_.contains(command);
}

void Agent::requireAllowed(const std::vector<std::string>& commands) {
  if (std::ranges::all_of(commands,
                          [this](const std::string& command) { return allows(command); })) {
    return;
  }
  std::vector<std::string> blocked;
  std::ranges::copy_if(usedCommands, std::back_inserter(blocked),
                       [this](const char* command) { return !allows(command); });
  throw AgentUnavailable(
      "the guest agent of domain " + printable(name_) + " does not allow " + join(blocked, ", "),
      remedyFor(join(blocked, ", ")));
}

void Agent::startAndForget(const std::string& path,
                           const std::vector<std::string>& arguments) noexcept {
  try {
    const Json request{{"execute", "guest-exec"},
                       {"arguments", {{"path", path}, {"arg", arguments}}}};
    callWithin(*interrupted_ ? deadlines::agentCleanupSent : deadlines::agentCleanup, {},
               [&hypervisor = hypervisor_, domain = domain_, request = request.dump()] {
                 return hypervisor.askAgent(domain, request, deadlines::agentCleanup);
               });
  } catch (const std::exception&) {
  }
}

// Works past the deadline too, so that no program of ours is left running in the guest.
void Agent::stop(Process process) noexcept {
  startAndForget("/bin/kill", {"-KILL", std::to_string(static_cast<std::int64_t>(process))});
}

std::optional<ExecResult> Agent::poll(Process process) {
  const Json reply = call("guest-exec-status", Json{{"pid", static_cast<std::int64_t>(process)}});
  const JsonReader status(reply);
  if (!status["exited"].flagOr(false)) {
    return std::nullopt;
  }
  ExecResult result;
  result.exitCode = exitCodeOf(status);
  result.out = decodeBase64(status["out-data"].textOr(""));
  result.err = decodeBase64(status["err-data"].textOr(""));
  if (result.out.size() > largestOutput || result.err.size() > largestOutput) {
    throw AgentUnavailable(
        "a program in the guest of domain " + printable(name_) + " wrote more than 1 MiB of output",
        "");
  }
  return result;
}

ExecResult Agent::waitForEnd(Process process) {
  constexpr milliseconds longestPause{250};  // a transfer takes about a second
  milliseconds pause{20};
  for (;;) {
    if (auto result = poll(process)) {
      return *std::move(result);
    }
    static_cast<void>(timeLeft());  // throws past the deadline
    std::this_thread::sleep_for(pause);
    pause = std::min(pause * 2, longestPause);
  }
}

Agent::Process Agent::start(const std::string& path, const std::vector<std::string>& arguments,
                            std::string_view input) {
  requireAllowed({"guest-exec", "guest-exec-status"});
  Json request{{"path", path}, {"arg", arguments}, {"capture-output", true}};
  if (!input.empty()) {
    request["input-data"] = encodeBase64(input);
  }
  const Json started = call("guest-exec", request);
  const JsonReader answer(started);
  const JsonReader member = answer["pid"];
  const Json& pid = member.json();
  if (!pid.is_number_integer()) {
    throw AgentUnavailable(
        "the guest agent of domain " + printable(name_) + " did not start " + printable(path),
        "check that the program exists in the guest");
  }
  if (pid.get<std::int64_t>() <= 0) {
    throw AgentUnavailable(
        "the guest agent of domain " + printable(name_) + " returned an invalid process ID",
        "check that the agent in the guest is qemu-guest-agent");
  }
  return Process{pid.get<std::int64_t>()};
}

ExecResult Agent::run(const std::string& path, const std::vector<std::string>& arguments,
                      std::string_view input) {
  const Process process = start(path, arguments, input);
  try {
    return waitForEnd(process);
  } catch (...) {
    stop(process);
    throw;
  }
}

void Agent::requireFileWriting() {
  requireAllowed({"guest-file-open", "guest-file-write", "guest-file-close"});
}

void Agent::fillFile(const std::string& path, std::string_view content, const Progress& progress) {
  requireFileWriting();
  // `r+b` never creates the file: qemu-ga would create it with mode 0666.
  const Json handle = call("guest-file-open", Json{{"path", path}, {"mode", "r+b"}});
  if (!handle.is_number_integer()) {
    throw AgentUnavailable(
        "the guest agent of domain " + printable(name_) + " did not open " + printable(path),
        "check that its directory exists in the guest, and that SELinux lets the agent write "
        "there");
  }
  try {
    writeChunks(handle, path, content, progress);
  } catch (...) {
    try {
      call("guest-file-close", Json{{"handle", handle}});
    } catch (const std::exception&) {  // report the first error, not this one
    }
    throw;
  }
  call("guest-file-close", Json{{"handle", handle}});
}

void Agent::writeChunks(const Json& handle, const std::string& path, std::string_view content,
                        const Progress& progress) {
  for (std::size_t done = 0; done < content.size();) {
    const std::string_view chunk = content.substr(done, fileChunk);
    const Json written =
        call("guest-file-write", Json{{"handle", handle}, {"buf-b64", encodeBase64(chunk)}});
    if (JsonReader(written)["count"].numberOr(0) != chunk.size()) {
      throw AgentUnavailable("the guest agent of domain " + printable(name_) +
                                 " did not write all of " + printable(path),
                             "check for free space on that file system in the guest");
    }
    done += chunk.size();
    if (progress) {
      progress(done, content.size());
    }
  }
}

Agent Agent::withCheckpoint(Checkpoint checkpoint) const {
  Agent other = *this;
  other.checkpoint_ = std::move(checkpoint);
  return other;
}

void Agent::checkpoint() const {
  if (checkpoint_) {
    checkpoint_();
  }
}

bool isConfined(const std::string& context) {
  constexpr std::size_t longest = 256;
  if (context.size() > longest || !std::ranges::all_of(context, [](unsigned char each) {
        return std::isalnum(each) != 0 || each == '_' || each == ':' || each == '.' ||
               each == ',' || each == '-';
      })) {
    return false;
  }
  // user:role:type:level
  const auto role = context.find(':');
  const auto type = role == std::string::npos ? role : context.find(':', role + 1);
  if (type == std::string::npos) {
    return false;
  }
  return context.substr(type + 1, context.find(':', type + 1) - type - 1) == "virt_qemu_ga_t";
}

// The boolean alone changes nothing for a shell: only a program with this file type leaves the
// agent's type (virt_qemu_ga_unconfined_selinux(8), "ENTRYPOINTS").
std::string confinementRemedy() {
  return "in the guest: install vfpass-probe as /usr/libexec/vfpass/vfpass-probe, then run "
         "`setsebool -P virt_qemu_ga_run_unconfined on`, `semanage fcontext -a -t "
         "virt_qemu_ga_unconfined_exec_t /usr/libexec/vfpass/vfpass-probe` and `restorecon -v "
         "/usr/libexec/vfpass/vfpass-probe`";
}

std::optional<std::string> findConfinement(Agent& agent) {
  try {
    const ExecResult result = runShell(agent, contextScript, {"vfpass"});
    const std::string line = firstLine(result.out);
    const auto space = line.find(' ');
    const std::string context = line.substr(0, space);
    const bool permissive = space != std::string::npos && line.substr(space + 1) == "0";
    if (result.exitCode == 0 && !permissive && isConfined(context)) {
      return context;
    }
  } catch (const AgentUnavailable&) {
    // The caller reports the problem that came first.
  }
  return std::nullopt;
}

}  // namespace vfpass::agent
