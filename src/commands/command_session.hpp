#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <iosfwd>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "operation_log.hpp"
#include "terminal.hpp"
#include "vfpass/apply/run.hpp"
#include "vfpass/base/call_within.hpp"
#include "vfpass/base/default_deadlines.hpp"
#include "vfpass/config/configuration.hpp"
#include "vfpass/host/system_kernel.hpp"
#include "vfpass/hypervisor.hpp"
#include "vfpass/inventory.hpp"
#include "vfpass/report/progress_line.hpp"
#include "vfpass/report/result_report.hpp"
#include "vfpass/report/table.hpp"
#include "vfpass/seal_key.hpp"
#include "vfpass/state/database.hpp"
#include "vfpass/state/locks.hpp"

namespace spdlog {
class logger;
}

namespace vfpass::commands {

/// What failed and how to resolve it, in one line.
std::string withRemedy(const Error& error);

// bounded_hypervisor.cpp

/// libvirt accepts a connection or call, but does not answer it in time.
class NoAnswer : public Error {
 public:
  explicit NoAnswer(std::chrono::milliseconds timeout);
};

/// ask() of a libvirt that may not answer: throws NoAnswer after `timeout`, if there is one. The
/// call then continues, so `ask` must own whatever it uses. Calls `whileWaiting` every 100 ms.
template <typename Ask>
auto answerWithin(std::optional<std::chrono::milliseconds> timeout, Ask ask,
                  const std::function<void()>& whileWaiting = {}) {
  if (!timeout) {
    return ask();
  }
  auto answer = callWithin(*timeout, whileWaiting, std::move(ask));
  if (!answer) {
    throw NoAnswer(*timeout);
  }
  return *std::move(answer);
}

/// What the line of progress says while libvirt does not answer.
inline constexpr const char* awaitedLibvirt = "waiting for libvirt";

/// `inner`, whose calls that read throw NoAnswer after `timeout`, if there is one, and from then on
/// at once; `progress` shows long ones. Those that change something, and those of the agent, which
/// have limits and lines of their own, are passed on.
std::unique_ptr<Hypervisor> boundedHypervisor(std::unique_ptr<Hypervisor> inner,
                                              std::optional<std::chrono::milliseconds> timeout,
                                              report::ProgressLine& progress);

/// Options of every command.
struct GlobalOptions {
  std::filesystem::path configDirectory = "/etc/vfpass";
  std::filesystem::path stateDirectory = "/var/lib/vfpass";
  std::filesystem::path runDirectory = "/run/vfpass";
  std::string connect;  ///< libvirt URI; empty: LIBVIRT_DEFAULT_URI, otherwise qemu:///system
  std::filesystem::path sysroot = "/";
  bool json = false;
  bool quiet = false;
  int verbosity = 0;
  std::string color = "auto";  ///< auto, always, never
  bool noPager = false;
};

/// Shows what the command waits for, on a line whose seconds count.
class LockProgress {
 public:
  LockProgress(report::ProgressLine& line, std::string subject);

 private:
  void show(report::ProgressLine& line, const std::string& subject, const state::LockWait* wait);

  std::optional<report::ProgressTicker> ticker_;  ///< while it waits
  state::LockWaitObserver observer_;
};

/// The resources of one command. Each is opened at its first use, so that a command fails only over
/// resources that it needs.
class Session {
 public:
  Session(GlobalOptions options, std::ostream& out, std::ostream& err);
  /// For one part of `whole`, such as one of several VMs: with its options and standard error, but
  /// resources, an operation and a result of its own. Does not print again what `whole` or another
  /// part of it has warned of.
  Session(Session& whole, std::ostream& out);
  ~Session();

  [[nodiscard]] const GlobalOptions& options() const { return options_; }
  [[nodiscard]] const report::Style& style() const { return style_; }
  /// For the command's document or report.
  std::ostream& out();
  /// For the error that ends the command; its notes and warnings have functions below.
  std::ostream& err() { return err_; }
  /// The same for text that may be longer than a screen: through a pager on a terminal, until the
  /// next line on standard error, or the end of this object.
  std::ostream& pagedOut();
  /// Waits until the user has left the pager.
  void endPager() { pager_.finish(); }
  /// Whether the command has begun to write there.
  [[nodiscard]] bool outputBegun() const { return outputBegun_; }

  /// The running system, or the captured tree given with --sysroot. Throws if that directory is not
  /// a captured tree, before anything is read from it.
  [[nodiscard]] host::Root root() const;
  host::SystemKernel& kernel();
  /// Throws NoAnswer if libvirt accepts the connection and does not answer, and so do the calls of
  /// the result that read; from then on at once. Of a command that changes domains, both wait as
  /// long as it takes: requireDomainChangesPossible().
  Hypervisor& hypervisor();
  /// The versions of libvirt's daemon and its emulator, over a connection of their own.
  std::string daemonVersions();
  /// Waits at most this long for the connection, and for each call that reads, instead of
  /// deadlines::libvirtAnswer and deadlines::libvirtCall. Before the first of them.
  void limitLibvirt(std::chrono::milliseconds timeout) { libvirtWait_ = {timeout, timeout}; }
  /// hypervisor() throws NoAnswer at once: libvirt has not answered an earlier session, whose call
  /// still keeps its connection open, and libvirtd accepts a limited number of them (max_clients).
  void assumeSilence();
  /// The next call of hypervisor() connects again, also to a libvirt that did not answer. Ends the
  /// life of its earlier result.
  void disconnect();
  /// For commands that change something: creates the directory and the file.
  state::Database& database();
  /// From now on, database() does not refuse one with an operation that this version does not
  /// understand.
  void acceptUnknownOperations() { acceptsUnknownOperations_ = true; }
  /// For commands that only read. Never writes; a missing database has no leases.
  std::vector<Lease> readLeases();
  /// The same database for other queries. Never writes.
  state::Database readDatabase();
  /// Devices in quarantine, with where they are now; none for a captured tree. Never writes.
  std::vector<QuarantinedDevice> quarantined();
  /// Only this device; nullopt: it is not in quarantine. Never writes.
  std::optional<QuarantinedDevice> quarantined(const PciAddress& device);
  /// Operations that have begun and not ended; none for a captured tree. Never writes.
  std::vector<Plan> openWork();
  /// SoftRoCE links that vfpass made. Never writes.
  std::vector<SoftRoceRecord> softRoceRecords();
  /// All PFs, and of the other PCI functions those in `functions` that exist.
  Inventory inventory(const std::vector<PciAddress>& functions = {});
  /// The same with serial numbers only of these PFs, whose leases are compared with them; and of
  /// all, if the configuration selects a PF by its serial number.
  Inventory inventory(const std::vector<PciAddress>& functions,
                      const std::vector<PciAddress>& serialsOf);
  /// Reads serial numbers that inventory() left out.
  void addSerials(Inventory& inventory, const std::vector<PciAddress>& pfs) const;
  /// Whether selecting PFs by the configuration needs all serial numbers.
  host::Serials serialsToSelect();
  /// Adds the current holders of these PFs' VFs and of the inventory's functions, and the devices
  /// in quarantine.
  void addHolders(Inventory& inventory, const std::vector<PciAddress>& pfs);
  const config::Configuration& configuration();
  /// Conflicts between mappings, then the problems of single files.
  const std::vector<config::Problem>& configurationProblems();
  /// For commands that change something. They create the seal key when they first need it.
  apply::Tools tools();
  /// The key that seals metadata on this host; its secret is empty until the key exists.
  const SealKey& sealKey();
  /// For plans without steps on domains; does not connect to libvirt.
  apply::Tools hostTools();

  /// What the journal records of this command's operation.
  OperationLog& operations() { return operations_; }

  /// apply::run(), whose warnings are printed. The plan becomes part of the result.
  void run(const Plan& plan, apply::Tools& tools, std::vector<state::FileLock> locks);
  /// Prints the failure of a part like a warning; the command continues with the others. Returns
  /// its exit code.
  ExitCode fail(const Error& error);
  /// For the result of `detach --keep`.
  void setKept(report::KeptDevices kept) { result_.kept = std::move(kept); }
  /// Whether the command has so far run no plan, failed at no part and noted nothing.
  [[nodiscard]] bool hasDoneNothing() const;
  /// Whether the command has run a plan completely.
  [[nodiscard]] bool hasChanged() const { return !result_.executed.empty(); }
  /// The end of a command that changes something: writes its result with --json. Returns `code`.
  ExitCode finish(const std::string& command, ExitCode code);

  /// Prints the line on stderr, or writes it to the journal if stderr ends there: note() unless
  /// --quiet, verbose() only with --verbose.
  void note(const std::string& line);
  void warn(const std::string& line);  ///< each line once
  void verbose(const std::string& line);
  /// On a terminal, unless --quiet or --verbose. The functions above write over it.
  report::ProgressLine& progress() { return progress_; }

  /// While the result lives, a wait for a lock is such a line: "waiting for the lock of VM train0,
  /// held by process 123 (vfpass detach train0)". `subject` is for locks whose subject is not in
  /// the name of their file. Null if there are no such lines.
  std::unique_ptr<LockProgress> showLockWaits(const std::string& subject = {});

  /// Throws (bad input) for a captured tree. `what` is the command.
  void requireThisHost(const std::string& what) const;

  /// Throws unless the effective user is root and there is no --sysroot. `what` is the command.
  void requireChangesPossible(const std::string& what) const;

  /// Throws (bad input) unless libvirt is the system daemon of this host: no other one knows which
  /// domains use its devices.
  void requireLocalLibvirt(const std::string& what);

  /// Both checks, for commands that change domains. From then on the command waits for libvirt as
  /// long as it takes: starting domains, whose locks libvirt holds, must not end a change.
  void requireDomainChangesPossible(const std::string& what);

 private:
  /// Of the connection, and of each call that reads; nullopt: unlimited.
  struct LibvirtWait {
    std::optional<std::chrono::milliseconds> connection = deadlines::libvirtAnswer;
    std::optional<std::chrono::milliseconds> call = deadlines::libvirtCall;
  };

  /// ask() within the time for a connection; see answerWithin().
  template <typename Ask>
  auto connecting(Ask ask, const std::function<void()>& whileWaiting = {});
  void write(events::Priority priority, const std::string& line);

  GlobalOptions options_;
  std::ostream& out_;
  std::ostream& err_;
  OperationLog operations_;
  std::unique_ptr<spdlog::logger> log_;
  report::Style style_;
  std::unique_ptr<host::SystemKernel> kernel_;
  LibvirtWait libvirtWait_;
  std::optional<NoAnswer> silence_;
  std::unique_ptr<Hypervisor> hypervisor_;
  std::unique_ptr<state::Database> database_;
  bool acceptsUnknownOperations_ = false;
  std::optional<SealKey> sealKey_;
  std::optional<config::Configuration> configuration_;
  std::optional<std::vector<config::Problem>> configurationProblems_;
  report::ProgressLine progress_;
  std::unique_ptr<LockProgress> lockWaits_;
  std::set<std::string> warned_;
  std::set<std::string>* warnedByWhole_ = nullptr;  ///< and printed; null: this is not a part
  report::Result result_;
  bool outputBegun_ = false;
  Pager pager_;
};

}  // namespace vfpass::commands
