#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "worker/worker.hpp"
#include "world/exchange.hpp"

namespace vfpass::crash {

/// Several processes at once on one host. A gate decides which request waits, so a test can stop a
/// process at a certain request.
class Interleaving {
 public:
  struct Process {
    Process(World& world, const Program& program)
        : worker(world.files.root(), program), exchange(world, {}) {}
    std::string name;
    Worker worker;
    Exchange exchange;
    std::optional<Message> waiting;  ///< the request that the gate does not let through
    bool blocked = false;            ///< waits for the lock of another process
    bool ended = false;
    Result result;  ///< after the end

    [[nodiscard]] bool waitsFor(const std::string& kind) const {
      return waiting && waiting->at(0) == kind;
    }
  };

  explicit Interleaving(World& world) : world_(world) {}

  /// Whether a process may proceed with a request. At first every one may.
  std::function<bool(const Process&, const Message&)> gate;

  /// Starts `vfpass WORDS`; the name is the command.
  Process& launch(const std::vector<std::string>& words);
  /// Serves requests until the condition holds. Throws if it does not hold after 30 seconds.
  void runUntil(const std::function<bool()>& condition);
  void runToEnd();
  /// Sends SIGKILL to a process.
  void kill(Process& process);

 private:
  bool serveOne(Process& process);
  void receive(Process& process);
  void waitForRequests();

  World& world_;
  std::map<std::string, std::unique_ptr<Process>> processes_;
};

}  // namespace vfpass::crash
