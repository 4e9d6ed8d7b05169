#include "libvirt_object.hpp"

#include <cerrno>
#include <mutex>

#include "libvirt_functions.hpp"
#include "vfpass/base/text.hpp"

namespace vfpass::libvirt {
namespace {

// libvirt sends at most 4 MiB (REMOTE_STRING_MAX), but stores more: it indents the elements of
// other programs in <metadata>, so that 500 KB become 4 MiB. virsh cannot print or edit the XML
// then, but the daemon's own files have the elements, and removing one needs no XML.
Error tooLargeToSend(const std::string& what, const Failure& failure, const std::string& directory,
                     const std::string& command) {
  return Error(what + ": too large for libvirt to send: " + failure.message,
               "look for large elements in the <metadata> of its file in " + directory +
                   ", then remove each with `virsh " + command +
                   "`, where URI is the namespace of the element");
}

// "Unable to encode message payload" ends the call but not the connection
// (virNetServerProgramDispatchCall). The text depends on the daemon's language.
DomainXml unreadable(virConnectPtr connection, const std::string& what, const Failure& failure,
                     const std::string& directory, const std::string& command) {
  if (virConnectIsAlive(connection) != 1) {
    throw callError(what, failure);
  }
  return DomainXml(failure.code == VIR_ERR_RPC ? tooLargeToSend(what, failure, directory, command)
                                               : callError(what, failure));
}

bool meansNoPermission(const Failure& failure) {
  switch (failure.code) {
    case VIR_ERR_AUTH_FAILED:
    case VIR_ERR_AUTH_CANCELLED:
    case VIR_ERR_AUTH_UNAVAILABLE:
    case VIR_ERR_ACCESS_DENIED:
    case VIR_ERR_OPERATION_DENIED:
      return true;
    default:
      return failure.systemError == EACCES || failure.systemError == EPERM;
  }
}

bool meansNotRunning(const Failure& failure) {
  return failure.systemError == ENOENT || failure.systemError == ECONNREFUSED;
}

bool meansUnknownUri(const Failure& failure) {
  const bool isUnreadable = failure.code == VIR_ERR_INTERNAL_ERROR &&
                            failure.message.find("Unable to parse URI") != std::string::npos;
  return isUnreadable || failure.code == VIR_ERR_NO_CONNECT ||
         failure.code == VIR_ERR_INVALID_ARG || failure.code == VIR_ERR_NO_SUPPORT ||
         failure.code == VIR_ERR_CONFIG_UNSUPPORTED || failure.code == VIR_ERR_UNKNOWN_HOST;
}

bool meansLostConnection(const Failure& failure) {
  return failure.code == VIR_ERR_RPC || failure.code == VIR_ERR_INVALID_CONN ||
         failure.systemError == EPIPE || failure.systemError == ECONNRESET;
}

constexpr const char* startDaemonRemedy =
    "start the daemon: `systemctl start libvirtd` (with modular daemons: virtqemud)";
constexpr const char* permissionRemedy = "run as root, or join the group libvirt and log in again";

}  // namespace

std::string nameOf(virDomainPtr domain) {
  const char* name = virDomainGetName(domain);
  return name == nullptr ? "" : name;
}

std::string domainNamed(const std::string& name) { return "domain '" + printable(name) + "'"; }

DomainXml readXml(virDomainPtr domain, unsigned flags, const std::string& name) {
  if (const Memory<char> xml(virDomainGetXMLDesc(domain, flags)); xml) {
    return DomainXml(xml.get());
  }
  const Failure failure = lastFailure();
  if (isMissingDomain(failure)) {
    throw Vanished{};
  }
  const bool live = (flags & VIR_DOMAIN_XML_INACTIVE) == 0;
  const std::string scope = live ? "--live" : "--config";
  return unreadable(virDomainGetConnect(domain), "cannot read the XML of " + domainNamed(name),
                    failure, live ? "/run/libvirt/qemu" : "/etc/libvirt/qemu",
                    "metadata " + shellArgument(name) + " --uri URI --remove " + scope);
}

DomainXml readXml(virNetworkPtr network, const std::string& name) {
  if (const Memory<char> xml(virNetworkGetXMLDesc(network, 0)); xml) {
    return DomainXml(xml.get());
  }
  const Failure failure = lastFailure();
  if (failure.code == VIR_ERR_NO_NETWORK) {
    throw Vanished{};
  }
  return unreadable(virNetworkGetConnect(network),
                    "cannot read the XML of network '" + printable(name) + "'", failure,
                    "/etc/libvirt/qemu/networks",
                    "net-metadata " + shellArgument(name) + " --uri URI --remove --current");
}

void silenceLibvirt() {
  static std::once_flag once;
  std::call_once(once, [] { virSetErrorFunc(nullptr, [](void*, virErrorPtr) {}); });
}

Failure lastFailure() {
  const virError* error = virGetLastError();
  if (error == nullptr) {
    return {VIR_ERR_INTERNAL_ERROR, 0, "libvirt reported no reason"};
  }
  // Only virReportSystemError stores errno in int1.
  const bool fromSystem = error->code == VIR_ERR_SYSTEM_ERROR;
  return {error->code, fromSystem ? error->int1 : 0,
          error->message == nullptr ? "libvirt reported no reason" : printable(error->message)};
}

bool isMissingDomain(const Failure& failure) { return failure.code == VIR_ERR_NO_DOMAIN; }

bool hasNoNetworkDriver(const Failure& failure) {
  return failure.code == VIR_ERR_NO_SUPPORT || failure.code == VIR_ERR_NO_CONNECT ||
         meansNotRunning(failure);
}

Error connectError(const std::string& uri, const Failure& failure) {
  const std::string subject = "libvirt at " + printable(uri);
  if (meansNoPermission(failure)) {
    return Error("no permission to use " + subject + ": " + failure.message, permissionRemedy);
  }
  if (meansNotRunning(failure)) {
    return Error(subject + " is not running: " + failure.message, startDaemonRemedy);
  }
  if (meansUnknownUri(failure)) {
    return Error(
        "cannot use " + printable(uri) + " as a libvirt URI: " + failure.message,
        "specify another URI with --connect or LIBVIRT_DEFAULT_URI, such as qemu:///system",
        ExitCode::badInput);
  }
  return Error("cannot connect to " + subject + ": " + failure.message,
               "check the daemon's log: `journalctl -u libvirtd -u virtqemud`");
}

Error callError(const std::string& what, const Failure& failure) {
  if (meansNoPermission(failure)) {
    return Error(what + ": libvirt denied permission: " + failure.message, permissionRemedy);
  }
  if (meansLostConnection(failure)) {
    return Error(what + ": lost the connection to libvirt: " + failure.message, startDaemonRemedy);
  }
  return Error(what + ": " + failure.message,
               "check the daemon's log: `journalctl -u libvirtd -u virtqemud`");
}

}  // namespace vfpass::libvirt
