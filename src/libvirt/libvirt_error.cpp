#include "libvirt_object.hpp"

#include <cerrno>
#include <mutex>

#include "libvirt_functions.hpp"
#include "vfpass/base/text.hpp"

namespace vfpass::libvirt {
namespace {

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
