#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "vfpass/lease.hpp"

namespace vfpass::events {

/// An operation that is recorded in the systemd journal; the value of `VFPASS_OPERATION`.
enum class Operation {
  attach,
  detach,
  guestSetup,
  prepare,    ///< the hook, before a domain starts
  started,    ///< the hook, after a domain started
  release,    ///< the hook, after a domain stopped
  reconnect,  ///< the hook, when libvirt's daemon restarts while the domain runs
  hostApply,
  recover,
  gc,
  verify,
  quarantineRelease,
};

/// How an operation ended; the value of `VFPASS_RESULT`.
enum class Result {
  done,
  failed,
  refused,     ///< it would have disrupted a device in use; the event is that of `failed`
  unverified,  ///< a verification without a verdict
};

/// A syslog priority, the value of `PRIORITY`.
enum class Priority { error = 3, warning = 4, notice = 5, info = 6, debug = 7 };

/// A row of docs/logging.md.
struct Event {
  Operation operation;
  Result result;
  std::string_view messageId;  ///< of this event in every version of vfpass
  Priority priority;
};

/// Every event, in the order of docs/logging.md.
std::span<const Event> allEvents();

/// Null for a combination that never happens, such as a `recover` that is `unverified`.
const Event* findEvent(Operation operation, Result result);

std::string_view toString(Operation operation);  ///< attach, host-apply, ...
std::string_view toString(Result result);

/// The person who ran vfpass, however they became root.
struct Invoker {
  std::string name;
  unsigned id = 0;
};

/// The subject of an operation.
struct Subject {
  Operation operation = Operation::attach;
  std::string vm;              ///< as the domain spells it; empty: the operation has none
  std::optional<Uuid> domain;  ///< nullopt: not known (yet)
  std::vector<PciAddress> pfs;
  std::vector<PciAddress> vfs;
  std::vector<PciAddress> functions;  ///< PCI functions other than VFs
  std::optional<Invoker> invoker;     ///< nullopt: a service, or unknown

  /// Adds the devices of these leases, each one once.
  void addDevices(const std::vector<Lease>& leases);
};

/// How an operation ended, in words.
struct Ending {
  Result result = Result::done;
  std::string message;
  std::string remedy = {};
};

/// The datagram of an event, for the journal's socket (systemd's JOURNAL_NATIVE_PROTOCOL).
/// `program` is its SYSLOG_IDENTIFIER. Every value is preceded by its length, so that no domain
/// name can add a field; values above a few kilobytes are cut. Empty if there is no such event.
std::string eventEntry(const Subject& subject, const Ending& ending, std::string_view program);

/// The datagram of a line of the log. `subject`: of the operation that wrote it, or null.
std::string lineEntry(Priority priority, std::string_view line, const Subject* subject,
                      std::string_view program);

/// Where systemd-journald listens (systemd's JOURNAL_NATIVE_PROTOCOL).
inline constexpr const char* journalSocket = "/run/systemd/journal/socket";

/// Sends an entry without waiting: no operation may depend on a journal that is
/// missing, full or stopped. False if the entry was not accepted. Async-signal-safe.
bool sendEntry(std::string_view datagram, const char* socket = journalSocket) noexcept;

/// True if stderr is a stream of the journal, as for a systemd service: `variable` is the value of
/// JOURNAL_STREAM, the device and inode of that stream (systemd.exec(5)), or null.
bool isJournalStream(int descriptor, const char* variable) noexcept;

}  // namespace vfpass::events
