#include "libvirt_object.hpp"

#include "vfpass/base/shell.hpp"
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

}  // namespace vfpass::libvirt
