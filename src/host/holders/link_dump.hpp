#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace vfpass::host {

/// One network device, as a dump of RTM_GETLINK describes it. Texts are the kernel's, not
/// printable.
struct Link {
  int index = 0;
  std::string name;
  std::string kind;  ///< `macvlan`, `bridge`, `bond`; empty for hardware
  bool up = false;
  int master = 0;                     ///< index of its bond, bridge or the like; 0: none
  int lower = 0;                      ///< index of the device that it sits on; 0: none
  std::optional<int> lowerNamespace;  ///< id of that device's namespace; nullopt: the same one
  /// The device that it belongs to: `pci` and `0000:3b:00.2`. Since Linux 5.14; empty: none.
  std::string parentBus;
  std::string parentName;
};

/// A dump's content. Damaged parts are left out.
struct LinkDump {
  std::vector<Link> links;
  int error = 0;             ///< errno; 0: the dump is whole
  bool interrupted = false;  ///< links may be missing: ask again
};

struct AddressDump {
  std::set<int> interfaces;  ///< those with an address that somebody gave them
  int error = 0;
  bool interrupted = false;
};

/// RTM_GETLINK and RTM_GETADDR as dumps.
std::string linkDumpQuery();
std::string addressDumpQuery();
/// RTM_GETNSID: by which number this namespace knows the one that `descriptor` has open.
std::string namespaceIdQuery(int descriptor);

LinkDump parseLinkDump(std::string_view dump);
/// IPv6's link-local addresses come by themselves with an interface that is set up: they do not
/// count.
AddressDump parseAddressDump(std::string_view dump);
/// Nullopt when it has none there.
std::optional<int> parseNamespaceId(std::string_view reply);

}  // namespace vfpass::host
