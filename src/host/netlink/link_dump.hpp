#pragma once

#include <cerrno>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace vfpass::host {

/// One network device in an RTM_GETLINK dump. Texts are not made printable.
struct Link {
  int index = 0;
  std::string name;
  std::string kind;  ///< `macvlan`, `bridge`, `bond`; empty for hardware
  bool up = false;
  int master = 0;                     ///< index of its bond, bridge or the like; 0: none
  int lower = 0;                      ///< index of the device below it; 0: none
  std::optional<int> lowerNamespace;  ///< ID of that device's namespace; nullopt: the same one
  /// Its parent device: `pci` and `0000:3b:00.2`. Since Linux 5.14; empty: none.
  std::string parentBus;
  std::string parentName;
};

/// The content of a dump. Malformed parts are skipped.
struct LinkDump {
  std::vector<Link> links;
  int error = EBADMSG;       ///< errno; 0: the dump is complete; EBADMSG: its end is missing
  bool interrupted = false;  ///< links may be missing: retry
};

struct AddressDump {
  std::set<int> interfaces;  ///< interfaces with a configured address
  int error = EBADMSG;
  bool interrupted = false;
};

/// Which links to keep: all, or those with a parent device or above a device of another namespace.
/// In another namespace only these can use a device of the host, and users can create any number
/// of the others.
enum class LinkScope { all, ofDevices };

/// RTM_GETLINK and RTM_GETADDR as dumps, of all interfaces of the network namespace; the kernel
/// only filters by interface on sockets with strict checking (NETLINK_GET_STRICT_CHK).
std::string linkDumpQuery();
std::string addressDumpQuery();
/// RTM_GETNSID: the ID that this namespace has assigned to the namespace open as `descriptor`.
std::string namespaceIdQuery(int descriptor);

/// Adds the messages of the next datagram of a dump.
void addLinks(std::string_view datagram, LinkScope scope, LinkDump& dump);
/// Ignores IPv6 link-local addresses, which the kernel assigns when an interface is set up.
void addAddresses(std::string_view datagram, AddressDump& dump);
/// Nullopt when no ID is assigned.
std::optional<int> parseNamespaceId(std::string_view reply);

/// The IP addresses of one interface in a dump, `192.0.2.1/24`, in the kernel's order, without IPv6
/// link-local ones. Malformed messages are skipped.
std::vector<std::string> parseAddresses(std::string_view dump, int interfaceIndex);

}  // namespace vfpass::host
