#pragma once

#include <chrono>
#include <filesystem>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "worker/worker.hpp"
#include "world/exchange.hpp"

namespace vfpass::crash {

/// Commands, starts and stops of domains at the same time on one host, with libvirt's domain locks,
/// in random order and with random kills. Checks during the round that no VF has two users, and
/// after it that everything can be recovered and detached.
class Stress {
 public:
  /// `killsPer10000`: requests that end with SIGKILL.
  Stress(std::uint32_t seed, unsigned killsPer10000, const std::filesystem::path& root);

  /// Starts so many commands and hook calls, at most six at once, and waits for all of them.
  void run(unsigned actions);

  /// One line for each thing that is wrong.
  [[nodiscard]] const std::vector<std::string>& faults() const { return faults_; }
  [[nodiscard]] const std::map<std::string, long>& counts() const { return counts_; }
  [[nodiscard]] const std::vector<std::string>& log() const { return log_; }

 private:
  struct Process {
    Process(World& world, const Program& program)
        : worker(world.files.root(), program), exchange(world, {}) {}
    std::string name;
    std::string hookOf;    // the domain whose lock libvirt holds
    std::string hookCall;  // prepare, started, release
    Worker worker;
    Exchange exchange;
    std::optional<Message> waiting;
    std::chrono::steady_clock::time_point due;  // of the request: some are slow
    bool killed = false;
    bool ended = false;
  };

  unsigned pick(unsigned below) { return static_cast<unsigned>(random_() % below); }
  std::string pickVm() { return "vm" + std::to_string(pick(vms)); }
  void beginAction();
  void startDomain(const std::string& vm);
  void stopDomain(const std::string& vm);
  Process& launch(const Program& program, const std::string& name);
  void launchCommand(std::vector<std::string> words);
  void launchHook(const std::string& vm, const std::string& call, const std::string& xml);

  void receiveRequests(bool mayWait);
  void serveRequests();
  void serve(Process& process);
  void removeEnded();
  void finish(Process& process);
  void finishHook(const Process& process, int code);
  [[nodiscard]] bool isLocked(const Message& request);

  void fault(const std::string& text);
  void checkStarted(const std::string& vm);
  void checkRunningDomains();
  void checkLeases();
  void checkEnd(const std::string& before);
  void expectSuccess(const Result& result, const std::string& what);

  static constexpr unsigned vms = 5;
  static constexpr unsigned processesAtOnce = 6;

  std::mt19937 random_;
  unsigned killsPer10000_;
  World world_;
  std::list<Process> processes_;
  std::set<std::string> locked_;  // domains in a hook call
  std::uint64_t lastGeneration_ = 0;
  std::set<std::string> reported_;
  std::vector<std::string> faults_;
  std::map<std::string, long> counts_;
  std::vector<std::string> log_;
};

}  // namespace vfpass::crash
