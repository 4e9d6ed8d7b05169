#include <syslog.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "operations.hpp"
#include "supervisor.hpp"
#include "vfpass/base/default_deadlines.hpp"
#include "vfpass/base/own_process.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/error.hpp"
#include "vfpass/events/journal_event.hpp"

namespace vfpass::hook {
namespace {

using XmlHandler = std::vector<Lease> (*)(const CalledDomain&, const Places&);
/// Needs only the domain's UUID: nothing that somebody writes into the XML can prevent it, and text
/// that is not XML, or only its beginning, is accepted.
using LeaseHandler = std::vector<Lease> (*)(const Uuid&, const std::string& xml, const Places&);
/// Of the calls whose standard output libvirt takes for the domain's XML.
using FilterHandler = ArrivalAnswer (*)(const CalledDomain&, const Places&);
using Handler = std::variant<XmlHandler, LeaseHandler, FilterHandler>;

/// A hook call of libvirt, its handler, and whether a failure may stop the domain. A failure in
/// `reconnect` would kill the running guest, and one in `restore` can cost the saved image
/// (restoreSaved()); libvirt ignores the exit status of `release`. A refused `migrate` is in the
/// journal as the refusal of the start that it precedes.
struct Operation {
  const char* name;
  const char* suboperation;
  Handler handler;
  const char* ended;  ///< in the journal, before the number of devices
  std::chrono::seconds timeout;
  events::Operation event;
  bool mayRefuse;
};

using Event = events::Operation;

constexpr std::array operations{Operation{"prepare", "begin", &prepare, "prepared",
                                          deadlines::hookPrepare, Event::prepare, true},
                                Operation{"started", "begin", &markRunning, "runs with",
                                          deadlines::hookStarted, Event::started, false},
                                Operation{"release", "end", &release, "released",
                                          deadlines::hookRelease, Event::release, false},
                                Operation{"reconnect", "begin", &reconnect, "",
                                          deadlines::hookReconnect, Event::reconnect, false},
                                Operation{"restore", "begin", &restoreSaved, "replaced in its XML",
                                          deadlines::hookArrival, Event::prepare, false},
                                Operation{"migrate", "begin", &receive, "replaced in its XML",
                                          deadlines::hookArrival, Event::prepare, true}};

const Operation* findOperation(const Request& request) {
  for (const auto& operation : operations) {
    if (request.operation == operation.name && request.suboperation == operation.suboperation) {
      return &operation;
    }
  }
  return nullptr;
}

// Without the journal, syslog has the same line.
void report(const Request& request, const events::Subject& subject, const Error& error) {
  const std::string line = errorLine(error);
  std::fprintf(stderr, "vfpass: %s\n", line.c_str());
  const bool refused = error.code() == ExitCode::refused;
  const events::Ending ending{refused ? events::Result::refused : events::Result::failed,
                              printableLine(error.what()), error.remedy()};
  if (events::sendEntry(events::eventEntry(subject, ending, program))) {
    return;
  }
  syslog(LOG_ERR, "%s %s: %s", printable(request.name).c_str(), request.operation.c_str(),
         line.c_str());
}

void record(const Operation& operation, events::Subject subject, const std::vector<Lease>& leases) {
  subject.addDevices(leases);
  const std::string message = "domain " + printable(subject.vm) + ": " + operation.ended + " " +
                              std::to_string(leases.size()) +
                              (leases.size() == 1 ? " device" : " devices");
  events::sendEntry(events::eventEntry(subject, {events::Result::done, message}, program));
}

Places placesFor(const Operation& operation) {
  Places places;
  // Operations with a deadline of their own end one second before the watchdog, the last resort.
  places.deadline = std::chrono::steady_clock::now() + operation.timeout - std::chrono::seconds(1);
  return places;
}

void dropPrivileges() {
  if (const int error = reducePrivileges(); error != 0) {
    syslog(LOG_WARNING, "cannot drop privileges: %s", errnoText(error).c_str());
  }
}

// libvirt passes an empty text if it cannot print the domain, for example because of its size
// (virHookCall). Then nothing is known, and a domain with leases must not start.
void requireComplete(const DomainInput& input) {
  if (!input.complete || input.xml.empty()) {
    throw Error(
        input.xml.empty() ? "libvirt passed no domain XML" : "the domain XML is larger than 16 MiB",
        "remove large elements of other programs from its metadata: `virsh metadata DOMAIN "
        "--uri URI --remove --config`");
  }
}

// Empty for a domain that vfpass does not manage. Our device without our metadata would start with
// whatever values its VF has now.
std::optional<CalledDomain> managedDomain(const DomainInput& input, events::Subject& subject) {
  requireComplete(input);
  dropPrivileges();
  CalledDomain parsed{domain::parseDomain(input.xml), input.xml};
  subject.domain = parsed.uuid;
  return parsed.managed || domain::hasOurDevices(parsed) ? std::optional(std::move(parsed))
                                                         : std::nullopt;
}

std::vector<Lease> handle(XmlHandler handler, const Operation& operation, const DomainInput& input,
                          events::Subject& subject, SharedText* /*replaced*/) {
  const auto parsed = managedDomain(input, subject);
  return parsed ? handler(*parsed, placesFor(operation)) : std::vector<Lease>();
}

std::vector<Lease> handle(FilterHandler handler, const Operation& operation,
                          const DomainInput& input, events::Subject& subject,
                          SharedText* replaced) {
  const auto parsed = managedDomain(input, subject);
  if (!parsed) {
    return {};
  }
  ArrivalAnswer answer = handler(*parsed, placesFor(operation));
  replaced->put(answer.xml);
  return std::move(answer.leases);
}

// The metadata, and with it every sign that vfpass manages the domain, can have been removed while
// the domain ran.
std::vector<Lease> handle(LeaseHandler handler, const Operation& operation,
                          const DomainInput& input, events::Subject& subject,
                          SharedText* /*replaced*/) {
  dropPrivileges();
  subject.domain = domain::leadingUuid(input.xml);
  if (!subject.domain) {
    throw Error("libvirt passed no domain XML with a UUID", "run `vfpass recover`");
  }
  return handler(*subject.domain, input.xml, placesFor(operation));
}

// Most domains of most hosts: nothing is done for them.
bool isUnmanaged(const Operation& operation, const DomainInput& input) {
  return !std::holds_alternative<LeaseHandler>(operation.handler) && !input.mayBeManaged &&
         !input.xml.empty();
}

// Sets the subject's domain as soon as it is known.
void serve(const Operation& operation, const Request& request, events::Subject& subject,
           SharedText* replaced) {
  const auto leases = std::visit(
      [&](auto handler) { return handle(handler, operation, request.input, subject, replaced); },
      operation.handler);
  if (!leases.empty()) {
    record(operation, subject, leases);
  }
}

// libvirt takes it for the domain's XML; after a failure it does not read it.
void answer(std::string_view xml) {
  if (std::fwrite(xml.data(), 1, xml.size(), stdout) != xml.size() || std::fflush(stdout) != 0) {
    throw Error("cannot write the domain XML to libvirt: " + errnoText(errno));
  }
}

int failureOf(const Operation& operation) { return operation.mayRefuse ? 1 : 0; }

int reporting(const Operation& operation, const Request& request, const events::Subject& subject,
              const std::function<int()>& work) {
  try {
    return work();
  } catch (const Error& error) {
    report(request, subject, error);
  } catch (const std::exception& error) {
    report(request, subject, Error(std::string("internal error: ") + error.what()));
  }
  return failureOf(operation);
}

int serveInWorker(const Operation& operation, const Request& request, events::Subject& subject) {
  std::optional<SharedText> replaced;
  if (std::holds_alternative<FilterHandler>(operation.handler)) {
    replaced.emplace();
  }
  const int code = superviseWorker([&] {
    return reporting(operation, request, subject, [&] {
      serve(operation, request, subject, replaced ? &*replaced : nullptr);
      return 0;
    });
  });
  if (code == 0 && replaced) {
    answer(replaced->get());
  }
  return code;
}

int run(int argc, char** argv) {
  if (argc < 4) {
    std::fprintf(stderr,
                 "usage: vfpass-qemu-hook NAME OPERATION SUBOPERATION EXTRA <domain.xml\n"
                 "libvirt calls this; see `vfpass hook install`\n");
    return 1;
  }
  Request request{argv[1], argv[2], argv[3], {}};
  const Operation* operation = findOperation(request);
  if (operation == nullptr) {
    return 0;
  }
  events::Subject subject;
  subject.operation = operation->event;
  subject.vm = request.name;
  startWatchdog(
      operation->timeout, failureOf(*operation),
      events::eventEntry(subject, {events::Result::failed, "deadline exceeded"}, program));
  return reporting(*operation, request, subject, [&] {
    request.input = readInput(STDIN_FILENO);
    if (isUnmanaged(*operation, request.input)) {
      return 0;
    }
    return serveInWorker(*operation, request, subject);
  });
}

}  // namespace
}  // namespace vfpass::hook

int main(int argc, char** argv) {
  vfpass::occupyClosedStreams();
  // Nothing below may depend on the caller's environment, such as PATH, LD_* or the locale.
  clearenv();
  // libvirtd reads our stderr and may exit at any time; that must not kill this process during an
  // operation.
  std::signal(SIGPIPE, SIG_IGN);
  openlog(vfpass::hook::program, LOG_PID, LOG_DAEMON);
  return vfpass::hook::run(argc, argv);
}
