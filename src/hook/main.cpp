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
#include "vfpass/error.hpp"
#include "watchdog.hpp"

namespace vfpass::hook {
namespace {

using Handler = void (*)(const domain::ParsedDomain&, const Places&);

/// What libvirt says, what we do, and whether a failure may stop the domain. A failure in
/// `reconnect` would kill the running guest; exit codes of `release` are ignored by libvirt.
struct Operation {
  const char* name;
  const char* suboperation;
  Handler handler;
  unsigned deadlineSeconds;
  bool mayRefuse;
};

constexpr Operation operations[] = {
    {"prepare", "begin", prepare, 60, true},
    {"started", "begin", markRunning, 10, false},
    {"release", "end", release, 45, false},
    {"reconnect", "begin", reconnect, 10, false},
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
  // libvirt makes stderr part of its own message: one line.
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
  // A device of ours without our metadata would start with whatever values its VF has now.
  if (parsed.managed || domain::hasOurDevices(parsed)) {
    Places places;
    // The watchdog is the last resort; what has a deadline of its own ends a second earlier.
    places.deadline =
        std::chrono::steady_clock::now() + std::chrono::seconds(operation.deadlineSeconds - 1);
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
  startWatchdog(operation->deadlineSeconds, operation->mayRefuse ? 1 : 0);
  try {
    request.xml = readXml(STDIN_FILENO);
    if (domain::mayBeManaged(request.xml)) {
      if (const int error = reducePrivileges(); error != 0) {
        syslog(LOG_WARNING, "cannot give up privileges: %s", errnoText(error).c_str());
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
  // Whatever the caller has set: nothing below looks at PATH, LD_* or a locale.
  clearenv();
  // libvirtd reads our stderr and may end at any time; a start that has begun is ended all the
  // same.
  std::signal(SIGPIPE, SIG_IGN);
  openlog("vfpass-qemu-hook", LOG_PID, LOG_DAEMON);
  return vfpass::hook::run(argc, argv);
}
