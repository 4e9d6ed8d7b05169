#include "unplug.hpp"

#include "event_loop.hpp"
#include "handles.hpp"
#include "libvirt_error.hpp"
#include "vfpass/base/text.hpp"

namespace vfpass::hypervisor {
namespace {

enum class Outcome { waiting, removed, refused, stopped };

// What the events said about one device of one domain.
struct Watch {
  std::string alias;
  Outcome outcome = Outcome::waiting;

  void tell(const char* device, Outcome news) {
    if (device != nullptr && alias == device) {
      outcome = news;
    }
  }
};

void onRemoved(virConnectPtr /*connection*/, virDomainPtr /*domain*/, const char* device,
               void* watch) {
  static_cast<Watch*>(watch)->tell(device, Outcome::removed);
}

void onRemovalFailed(virConnectPtr /*connection*/, virDomainPtr /*domain*/, const char* device,
                     void* watch) {
  static_cast<Watch*>(watch)->tell(device, Outcome::refused);
}

int onLifecycle(virConnectPtr /*connection*/, virDomainPtr /*domain*/, int event, int /*detail*/,
                void* watch) {
  if (event == VIR_DOMAIN_EVENT_STOPPED) {
    static_cast<Watch*>(watch)->outcome = Outcome::stopped;
  }
  return 0;
}

// One subscription to events of one domain, ended with the scope.
class Subscription {
 public:
  Subscription(virConnectPtr connection, virDomainPtr domain, int event,
               virConnectDomainEventGenericCallback callback, Watch& watch)
      : connection_(connection),
        id_(virConnectDomainEventRegisterAny(connection, domain, event, callback, &watch,
                                             nullptr)) {
    if (id_ < 0) {
      throw callError("cannot listen to libvirt's events", lastFailure());
    }
  }
  Subscription(const Subscription&) = delete;
  Subscription& operator=(const Subscription&) = delete;
  ~Subscription() { virConnectDomainEventDeregisterAny(connection_, id_); }

 private:
  virConnectPtr connection_;
  int id_;
};

// An event can be lost (a daemon restart) and one can come late: the XML is the truth.
bool isGone(virDomainPtr domain, const std::string& alias) {
  const Memory<char> xml(virDomainGetXMLDesc(domain, 0));
  return !xml || std::string(xml.get()).find("'" + alias + "'") == std::string::npos;
}

// False when there was nothing to ask for. libvirt says DEVICE_MISSING for an alias that it does
// not know; a guest that was asked before and has not answered yet is asked in vain again (QEMU:
// "already in the process of unplug"), and its answer still comes.
bool request(virDomainPtr domain, const std::string& alias) {
  if (virDomainDetachDeviceAlias(domain, alias.c_str(), VIR_DOMAIN_AFFECT_LIVE) == 0) {
    return true;
  }
  const Failure failure = lastFailure();
  if (failure.code == VIR_ERR_DEVICE_MISSING || isGone(domain, alias)) {
    return false;
  }
  if (failure.message.find("in the process of unplug") != std::string::npos) {
    return true;
  }
  throw callError("libvirt refuses to unplug " + alias, failure);
}

[[noreturn]] void throwStillThere(virDomainPtr domain, const std::string& alias, Outcome outcome,
                                  std::chrono::milliseconds patience) {
  const char* name = virDomainGetName(domain);
  const std::string subject = "domain " + printable(name == nullptr ? "" : name);
  if (outcome == Outcome::refused) {
    throw Error(subject + ": the guest refuses to let go of " + alias,
                "stop what uses the device in the guest, then detach again");
  }
  throw Error(subject + ": the guest has not let go of " + alias + " within " +
                  std::to_string(patience.count() / 1000) + " s; it still has the device",
              "does the guest run, with PCI hotplug? Shut it down, then detach again");
}

// libvirt's VIR_DOMAIN_EVENT_CALLBACK is one cast, of which compilers warn (clang 19). A function
// without parameters stands for any in between.
template <typename Callback>
virConnectDomainEventGenericCallback generic(Callback* callback) {
  return reinterpret_cast<virConnectDomainEventGenericCallback>(
      reinterpret_cast<void (*)()>(callback));
}

}  // namespace

void unplug(virConnectPtr connection, virDomainPtr domain, const std::string& alias,
            std::chrono::milliseconds patience) {
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
  runEventsUntil([&watch] { return watch.outcome != Outcome::waiting; }, patience);
  const bool answered = watch.outcome == Outcome::removed || watch.outcome == Outcome::stopped;
  if (!answered && !isGone(domain, alias)) {
    throwStillThere(domain, alias, watch.outcome, patience);
  }
}

}  // namespace vfpass::hypervisor
