#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "vfpass/error.hpp"
#include "vfpass/hypervisor.hpp"

namespace vfpass::agent {

/// The guest cannot be inspected: no agent, no answer, or a command that the agent does not allow.
/// The exit code is ExitCode::unverified; the remedy says what to change in the guest.
class AgentUnavailable : public Error {
 public:
  AgentUnavailable(const std::string& message, const std::string& remedy)
      : Error(message, remedy, ExitCode::unverified) {}
};

/// ExecResult::exitCode if the guest reports neither an exit status nor a signal that exists.
inline constexpr int unknownExitCode = -1;

/// Result of a program that ran in the guest. All of it is reported by the guest and untrusted.
struct ExecResult {
  int exitCode = 0;  ///< 0 to 255, 128 plus the number of the signal that ended it, or unknown
  std::string out;   ///< at most 1 MiB
  std::string err;   ///< at most 1 MiB
};

/// The QEMU guest agent of one running domain. Its replies are untrusted: bounded in size, depth
/// and time, and never printed unescaped.
class Agent {
 public:
  /// Called before each agent command, and every 100 ms while it waits; may throw Cancelled.
  using Checkpoint = std::function<void()>;

  /// `timeout` limits all calls together, and each of them to deadlines::agentCallWithin().
  /// References must outlive the agent.
  Agent(Hypervisor& hypervisor, const Uuid& domain, std::string domainName,
        std::chrono::seconds timeout, Checkpoint checkpoint = {});

  /// Runs a program in the guest with captured output and waits until it exits; `input` is its
  /// standard input. Throws AgentUnavailable when the agent does not allow it, does not answer, or
  /// times out.
  ExecResult run(const std::string& path, const std::vector<std::string>& arguments,
                 std::string_view input = {});

  /// Process ID of a running program, in the guest. Positive.
  enum class Process : std::int64_t {};

  /// Starts a program without waiting for it. The caller polls it until it exits, or stops it.
  Process start(const std::string& path, const std::vector<std::string>& arguments,
                std::string_view input = {});
  /// The program's result; nullopt while it runs. The agent discards the result once it has
  /// returned it, so do not poll again after that.
  std::optional<ExecResult> poll(Process process);
  /// Sends SIGKILL and does not wait for the process to exit.
  void stop(Process process) noexcept;
  /// Starts a cleanup program, even past the deadline. Ignores errors. Returns at once if a call
  /// was interrupted: libvirt starts the program when the agent answers again.
  void startAndForget(const std::string& path, const std::vector<std::string>& arguments) noexcept;

  /// Upload progress: bytes written so far, total bytes.
  using Progress = std::function<void(std::size_t done, std::size_t all)>;

  /// Writes into an existing empty file in the guest, in chunks, and always closes it. Never
  /// creates the file, because the agent would make it writable for every user of the guest (see
  /// guest_scripts.hpp). Throws AgentUnavailable, also on a short write.
  void fillFile(const std::string& path, std::string_view content, const Progress& progress = {});

  /// Extends the deadline to at least this long from now, so that a rollback can run after the
  /// original timeout was used up.
  void allowAtLeast(std::chrono::seconds timeout);

  /// What is left of the timeout; 0 once it is over.
  [[nodiscard]] std::chrono::seconds remaining() const;

  /// The same guest with a deadline that is not later than this long from now: for a call that is
  /// not worth the time of the others.
  [[nodiscard]] Agent withinAtMost(std::chrono::seconds timeout) const;

  /// Throws AgentUnavailable unless the agent allows the commands of fillFile(). Call it before the
  /// first of several changes.
  void requireFileWriting();

  /// Whether guest-info lists this command as enabled. Throws AgentUnavailable.
  bool allows(const std::string& command);

  /// Runs an agent command without arguments; returns its `return` member. Throws AgentUnavailable.
  nlohmann::json call(const std::string& command);

  /// The same guest with another checkpoint, for another thread.
  [[nodiscard]] Agent withCheckpoint(Checkpoint checkpoint) const;

  /// Calls the checkpoint.
  void checkpoint() const;

 private:
  using Clock = std::chrono::steady_clock;

  nlohmann::json call(const std::string& command, const nlohmann::json& arguments);
  std::string ask(const std::string& request);
  ExecResult waitForEnd(Process process);
  void writeChunks(const nlohmann::json& handle, const std::string& path, std::string_view content,
                   const Progress& progress);
  // Throws AgentUnavailable; the message names every command that the agent blocks.
  void requireAllowed(const std::vector<std::string>& commands);
  [[nodiscard]] std::chrono::seconds timeLeft() const;

  Hypervisor& hypervisor_;
  Uuid domain_;
  std::string name_;
  std::chrono::seconds longestCall_;
  Clock::time_point deadline_;
  Checkpoint checkpoint_;
  bool queried_ = false;
  std::set<std::string> allowed_;
  // Whether libvirt still waits for a reply that nobody awaits any more. Shared by the copies.
  std::shared_ptr<std::atomic<bool>> interrupted_ = std::make_shared<std::atomic<bool>>(false);
};

/// True for an SELinux context of the type virt_qemu_ga_t, in which the RHEL family runs the guest
/// agent and the programs that it starts. That type cannot open /dev/infiniband or GPUs, nor write
/// below /var/lib. `context` is untrusted; anything else than a context is false.
bool isConfined(const std::string& context);

/// How to let the probe leave that type, with the boolean and the file type of selinux-policy.
std::string confinementRemedy();

/// The context of the programs that the agent starts, if SELinux confines them and enforces that;
/// nullopt otherwise, and if the guest does not tell.
std::optional<std::string> findConfinement(Agent& agent);

}  // namespace vfpass::agent
