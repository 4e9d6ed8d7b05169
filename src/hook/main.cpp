#include <syslog.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "operations.hpp"
#include "privileges.hpp"
#include "request.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/deadlines.hpp"
#include "vfpass/error.hpp"
#include "watchdog.hpp"

namespace vfpass::hook {
namespace {

using Handler = void (*)(const domain::ParsedDomain&, const Places&);

/// A hook call of libvirt, its handler, and whether a failure may stop the domain. A failure in
/// `reconnect` would kill the running guest; libvirt ignores the exit status of `release`.
struct Operation {
  const char* name;
  const char* suboperation;
  Handler handler;
  std::chrono::seconds timeout;
  bool mayRefuse;
};

constexpr Operation operations[] = {
    {"prepare", "begin", prepare, deadlines::hookPrepare, true},
    {"started", "begin", markRunning, deadlines::hookStarted, false},
    {"release", "end", release, deadlines::hookRelease, false},
    {"reconnect", "begin", reconnect, deadlines::hookReconnect, false},
};

const Operation* findOperation(const Request& request) {
  for (const auto& operation : operations) {
    if (request.operation == operation.name && request.suboperation == operation.suboperation) {
      return &operation;
    }
  }
  return nullptr;
}

void report(const Request& request, const Error& error) {
  // One line, because libvirt puts stderr into its own error message.
  std::string line = error.what();
  if (!error.remedy().empty()) {
    line += "; " + error.remedy();
  }
  line = printableLine(line);
  std::fprintf(stderr, "vfpass: %s\n", line.c_str());
  syslog(LOG_ERR, "%s %s: %s", printable(request.name).c_str(), request.operation.c_str(),
         line.c_str());
}

void serve(const Operation& operation, const Request& request) {
  const domain::ParsedDomain parsed = domain::parseDomain(request.xml);
  // Our device without our metadata would start with whatever values its VF has now.
  if (parsed.managed || domain::hasOurDevices(parsed)) {
    Places places;
    // Operations with a deadline of their own end one second before the watchdog, the last resort.
    places.deadline =
        std::chrono::steady_clock::now() + operation.timeout - std::chrono::seconds(1);
    operation.handler(parsed, places);
  }
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
  startWatchdog(operation->timeout, operation->mayRefuse ? 1 : 0);
  try {
    request.xml = readXml(STDIN_FILENO);
    if (domain::mayBeManaged(request.xml)) {
      if (const int error = reducePrivileges(); error != 0) {
        syslog(LOG_WARNING, "cannot drop privileges: %s", errnoText(error).c_str());
      }
      serve(*operation, request);
    }
    return 0;
  } catch (const Error& error) {
    report(request, error);
  } catch (const std::exception& error) {
    report(request, Error(std::string("internal error: ") + error.what()));
  }
  return operation->mayRefuse ? 1 : 0;
}

}  // namespace
}  // namespace vfpass::hook

int main(int argc, char** argv) {
  // Nothing below may depend on the caller's environment, such as PATH, LD_* or the locale.
  clearenv();
  // libvirtd reads our stderr and may exit at any time; that must not kill this process during an
  // operation.
  std::signal(SIGPIPE, SIG_IGN);
  openlog("vfpass-qemu-hook", LOG_PID, LOG_DAEMON);
  return vfpass::hook::run(argc, argv);
}
