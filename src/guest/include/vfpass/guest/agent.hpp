#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "vfpass/error.hpp"
#include "vfpass/hypervisor.hpp"

namespace vfpass::guest {

/// The guest would not let us look: no agent, no answer, or a command that it does not allow. Its
/// exit code is ExitCode::unverified and its remedy says what to change in the guest.
class AgentUnavailable : public Error {
 public:
  AgentUnavailable(const std::string& message, const std::string& remedy)
      : Error(message, remedy, ExitCode::unverified) {}
};

/// What a program in the guest left behind. All of it is the guest's word.
struct ExecResult {
  int exitCode = 0;  ///< 128 and the signal's number when a signal ended it
  std::string out;   ///< at most 1 MiB
  std::string err;   ///< at most 1 MiB
};

/// The QEMU guest agent of one running domain. Everything that it says is hostile: bounded in size,
/// depth and time, and never printed unescaped.
class Agent {
 public:
  /// May throw (Cancelled); asked before each call.
  using Checkpoint = std::function<void()>;

  /// All calls together end within `patience`. References must outlive the agent.
  Agent(Hypervisor& hypervisor, const Uuid& domain, std::string domainName,
        std::chrono::seconds patience, Checkpoint checkpoint = {});

  /// Runs a program in the guest with captured output and waits for its end; `input` is what it
  /// reads. Throws AgentUnavailable when the guest does not allow it, does not answer, or is too
  /// slow.
  ExecResult run(const std::string& path, const std::vector<std::string>& arguments,
                 std::string_view input = {});

  /// A program under way in the guest: its process, as the guest counts. Positive.
  enum class Process : std::int64_t {};

  /// Starts one and does not wait. Whoever starts it polls it to its end, or stops it.
  Process start(const std::string& path, const std::vector<std::string>& arguments,
                std::string_view input = {});
  /// What it left behind; nullopt while it runs. Not to be asked again after its end.
  std::optional<ExecResult> poll(Process process);
  /// Kills it, and does not wait: a guest that does not say when it has is one that we cannot help.
  void stop(Process process) noexcept;
  /// For what is to be cleaned up, also when the patience is over: says nothing when it cannot.
  void startAndForget(const std::string& path, const std::vector<std::string>& arguments) noexcept;

  /// Told how much of a file has arrived: bytes so far, bytes of all.
  using Progress = std::function<void(std::size_t done, std::size_t all)>;

  /// Writes into an empty file that exists in the guest, in chunks, and closes it whatever happens.
  /// Never creates the file, because the agent would let every user of the guest write it (see
  /// trust_scripts.hpp). Throws AgentUnavailable, also when the guest took less than it was given.
  void fillFile(const std::string& path, std::string_view content, const Progress& progress = {});

  /// Gives the calls from now on at least this long: for taking back what was begun when the
  /// patience was used up.
  void allowAtLeast(std::chrono::seconds patience);

  /// Throws AgentUnavailable unless fillFile() may be called: before the first of several changes.
  void requireFileWriting();

  /// True when the guest says that it takes this command. Throws when it does not even say that.
  bool allows(const std::string& command);

  /// The `return` member of a command without arguments. Throws AgentUnavailable.
  nlohmann::json call(const std::string& command);

 private:
  using Clock = std::chrono::steady_clock;

  nlohmann::json call(const std::string& command, const nlohmann::json& arguments);
  ExecResult waitForEnd(Process process);
  void writeChunks(const nlohmann::json& handle, const std::string& path, std::string_view content,
                   const Progress& progress);
  // Throws AgentUnavailable, naming every command that the guest would have to allow.
  void requireAllowed(const std::vector<std::string>& commands);
  [[nodiscard]] std::chrono::seconds timeLeft() const;

  Hypervisor& hypervisor_;
  Uuid domain_;
  std::string name_;
  Clock::time_point deadline_;
  Checkpoint checkpoint_;
  bool asked_ = false;
  std::set<std::string> allowed_;
};

}  // namespace vfpass::guest
