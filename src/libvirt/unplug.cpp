#include <algorithm>
#include <mutex>

#include "libvirt_functions.hpp"
#include "libvirt_object.hpp"
#include "vfpass/base/text.hpp"

namespace vfpass::libvirt {
namespace {

using Clock = std::chrono::steady_clock;

// libvirt's loop goes on after a signal, which `done` may look for.
constexpr std::chrono::milliseconds pollInterval{250};

// Only wakes the loop; the waiter checks the clock.
void onTimer(int /*timer*/, void* /*opaque*/) {}

class WakeUp {
 public:
  explicit WakeUp(std::chrono::milliseconds after)
      : timer_(virEventAddTimeout(static_cast<int>(after.count()), onTimer, nullptr, nullptr)) {
    if (timer_ < 0) {
      throw callError("cannot wait for libvirt's events", lastFailure());
    }
  }
  WakeUp(const WakeUp&) = delete;
  WakeUp& operator=(const WakeUp&) = delete;
  ~WakeUp() { virEventRemoveTimeout(timer_); }

 private:
  int timer_;
};

// Runs libvirt's event loop until `done` returns true; returns false after `timeout`. `done` is
// checked after every event and at least four times a second; an exception of it ends the loop.
bool runEventsUntil(const std::function<bool()>& done, std::chrono::milliseconds timeout) {
  const auto deadline = Clock::now() + timeout;
  while (!done()) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
    if (left.count() <= 0) {
      return false;
    }
    const WakeUp wakeUp(std::min(left, pollInterval));
    if (virEventRunDefaultImpl() < 0) {
      throw callError("cannot wait for libvirt's events", lastFailure());
    }
  }
  return true;
}

enum class Outcome { waiting, removed, refused, stopped };

// The result of the events about one device of one domain.
struct Watch {
  std::string alias;
  Outcome outcome = Outcome::waiting;

  void record(const char* device, Outcome result) {
    if (device != nullptr && alias == device) {
      outcome = result;
    }
  }
};

void onRemoved(virConnectPtr /*connection*/, virDomainPtr /*domain*/, const char* device,
               void* watch) {
  static_cast<Watch*>(watch)->record(device, Outcome::removed);
}

void onRemovalFailed(virConnectPtr /*connection*/, virDomainPtr /*domain*/, const char* device,
                     void* watch) {
  static_cast<Watch*>(watch)->record(device, Outcome::refused);
}

int onLifecycle(virConnectPtr /*connection*/, virDomainPtr /*domain*/, int event, int /*detail*/,
                void* watch) {
  if (event == VIR_DOMAIN_EVENT_STOPPED) {
    static_cast<Watch*>(watch)->outcome = Outcome::stopped;
  }
  return 0;
}

// A scoped subscription to one kind of event of one domain.
class Subscription {
 public:
  Subscription(virConnectPtr connection, virDomainPtr domain, int event,
               virConnectDomainEventGenericCallback callback, Watch& watch)
      : connection_(connection),
        id_(virConnectDomainEventRegisterAny(connection, domain, event, callback, &watch,
                                             nullptr)) {
    if (id_ < 0) {
      throw callError("cannot subscribe to libvirt's events", lastFailure());
    }
  }
  Subscription(const Subscription&) = delete;
  Subscription& operator=(const Subscription&) = delete;
  ~Subscription() { virConnectDomainEventDeregisterAny(connection_, id_); }

 private:
  virConnectPtr connection_;
  int id_;
};

bool isRunning(virDomainPtr domain) {
  const int active = virDomainIsActive(domain);
  return active == 1 || (active < 0 && !isMissingDomain(lastFailure()));
}

// Events can be lost (when a daemon restarts) or late: the XML is authoritative. While the domain
// runs, XML that libvirt cannot send does not show that the device is gone, so that error counts.
bool isGone(virDomainPtr domain, const std::string& alias) {
  try {
    return !isRunning(domain) ||
           readXml(domain, 0, nameOf(domain)).text().find("'" + alias + "'") == std::string::npos;
  } catch (const Vanished&) {
    return true;
  }
}

// False if there was nothing to request. libvirt reports DEVICE_MISSING for an unknown alias.
// Repeating a request that the guest has not answered yet fails (QEMU: "already in the process of
// unplug"), but the answer to the first one still arrives.
bool request(virDomainPtr domain, const std::string& alias) {
  if (virDomainDetachDeviceAlias(domain, alias.c_str(), VIR_DOMAIN_AFFECT_LIVE) == 0) {
    return true;
  }
  const Failure failure = lastFailure();
  if (failure.message.find("in the process of unplug") != std::string::npos) {
    return true;
  }
  if (failure.code == VIR_ERR_DEVICE_MISSING || isGone(domain, alias)) {
    return false;
  }
  throw callError("libvirt refused to unplug " + alias, failure);
}

[[noreturn]] void throwStillPlugged(virDomainPtr domain, const std::string& alias, Outcome outcome,
                                    std::chrono::milliseconds timeout) {
  const std::string subject = "domain " + printable(nameOf(domain));
  if (outcome == Outcome::refused) {
    throw Error(subject + ": the guest refused to release " + alias,
                "stop the programs that use the device in the guest, then detach again");
  }
  throw Error(
      subject + ": the guest did not release " + alias + " within " +
          std::to_string(timeout.count() / 1000) + " s; the device is still plugged",
      "make sure that the guest is up and supports PCI hotplug, or shut it down; then detach "
      "again");
}

// libvirt's VIR_DOMAIN_EVENT_CALLBACK is a single cast, about which compilers warn (clang 19).
// Casting through a function type without parameters avoids the warning.
template <typename Callback>
virConnectDomainEventGenericCallback generic(Callback* callback) {
  return reinterpret_cast<virConnectDomainEventGenericCallback>(
      reinterpret_cast<void (*)()>(callback));
}

}  // namespace

void registerEventLoop() {
  static std::once_flag once;
  std::call_once(once, [] { virEventRegisterDefaultImpl(); });
}

void unplug(virConnectPtr connection, virDomainPtr domain, const std::string& alias,
            std::chrono::milliseconds timeout, const std::function<void()>& checkpoint) {
  Watch watch{alias};
  const Subscription removed(connection, domain, VIR_DOMAIN_EVENT_ID_DEVICE_REMOVED,
                             generic(onRemoved), watch);
  const Subscription failed(connection, domain, VIR_DOMAIN_EVENT_ID_DEVICE_REMOVAL_FAILED,
                            generic(onRemovalFailed), watch);
  const Subscription lifecycle(connection, domain, VIR_DOMAIN_EVENT_ID_LIFECYCLE,
                               generic(onLifecycle), watch);
  if (!request(domain, alias)) {
    return;
  }
  const auto isAnswered = [&] {
    checkpoint();
    return watch.outcome != Outcome::waiting;
  };
  runEventsUntil(isAnswered, timeout);
  const bool answered = watch.outcome == Outcome::removed || watch.outcome == Outcome::stopped;
  if (!answered && !isGone(domain, alias)) {
    throwStillPlugged(domain, alias, watch.outcome, timeout);
  }
}

}  // namespace vfpass::libvirt
