#include "read_xml.hpp"

#include "handles.hpp"
#include "vfpass/base/shell.hpp"
#include "vfpass/base/text.hpp"

namespace vfpass::libvirt {
namespace {

// libvirt sends at most 4 MiB (REMOTE_STRING_MAX), but stores more: it indents the elements of
// other programs in <metadata>, so that 500 KB become 4 MiB. "Unable to encode message payload"
// ends the call but not the connection (virNetServerProgramDispatchCall). The text depends on the
// daemon's language.
bool isTooLargeToSend(const Failure& failure, virConnectPtr connection) {
  return failure.code == VIR_ERR_RPC && virConnectIsAlive(connection) == 1;
}

// Neither `virsh edit` nor `virsh dumpxml` works then, but the daemon's own files have the
// elements, and removing one needs no XML.
Error tooLargeToSend(const std::string& what, const Failure& failure, const std::string& directory,
                     const std::string& command) {
  return Error(what + ": too large for libvirt to send: " + failure.message,
               "look for large elements in the <metadata> of its file in " + directory +
                   ", then remove each with `virsh " + command +
                   "`, where URI is the namespace of the element");
}

}  // namespace

std::string domainNamed(const std::string& name) { return "domain '" + printable(name) + "'"; }

void throwFailure(const std::string& what, const Failure& failure) {
  if (isMissingDomain(failure)) {
    throw Vanished{};
  }
  throw callError(what, failure);
}

std::string readXml(virDomainPtr domain, unsigned flags, const std::string& name) {
  const Memory<char> xml(virDomainGetXMLDesc(domain, flags));
  if (xml) {
    return xml.get();
  }
  const Failure failure = lastFailure();
  const std::string what = "cannot read the XML of " + domainNamed(name);
  if (isTooLargeToSend(failure, virDomainGetConnect(domain))) {
    const bool live = (flags & VIR_DOMAIN_XML_INACTIVE) == 0;
    const std::string scope = live ? "--live" : "--config";
    throw tooLargeToSend(what, failure, live ? "/run/libvirt/qemu" : "/etc/libvirt/qemu",
                         "metadata " + shellArgument(name) + " --uri URI --remove " + scope);
  }
  throwFailure(what, failure);
}

std::string readXml(virNetworkPtr network, const std::string& name) {
  const Memory<char> xml(virNetworkGetXMLDesc(network, 0));
  if (xml) {
    return xml.get();
  }
  const Failure failure = lastFailure();
  const std::string what = "cannot read the XML of network '" + printable(name) + "'";
  if (failure.code == VIR_ERR_NO_NETWORK) {
    throw Vanished{};
  }
  if (isTooLargeToSend(failure, virNetworkGetConnect(network))) {
    throw tooLargeToSend(what, failure, "/etc/libvirt/qemu/networks",
                         "net-metadata " + shellArgument(name) + " --uri URI --remove --current");
  }
  throw callError(what, failure);
}

}  // namespace vfpass::libvirt
