#pragma once

#include <span>
#include <string_view>

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

}  // namespace vfpass::events
