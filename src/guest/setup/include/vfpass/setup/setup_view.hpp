#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "vfpass/agent/agent.hpp"
#include "vfpass/pci_address.hpp"

namespace vfpass::setup {

/// Current settings of a network interface in the guest.
struct NetdevState {
  unsigned mtu = 0;
  bool up = false;
  /// Static addresses with prefix length, in canonical form; without DHCP and link-local ones.
  std::set<std::string> addresses;
  std::optional<unsigned> arpAnnounce;
  std::optional<unsigned> arpIgnore;

  bool operator==(const NetdevState&) const = default;
};

/// A network interface of a hardware device: no bond, bridge or VLAN.
struct SetupNetdev {
  std::string name;      ///< letters, digits and `_.:-`; interfaces with other names are ignored
  std::string address;   ///< hardware address, lower case: 6 bytes, 20 for InfiniBand
  std::string function;  ///< its PCI function in the guest; empty: none
  NetdevState state;
};

/// A file in the guest, or its absence.
struct FileState {
  bool exists = false;
  std::string content;
  unsigned mode = 0;
  unsigned user = 0;
  unsigned group = 0;

  bool operator==(const FileState&) const = default;
};

/// The guest's state as far as guest-setup needs it. All of it comes from the guest and is
/// untrusted.
struct SetupView {
  std::set<std::string> tools;  ///< `ip`, `netplan`, `nmcli`, `networkctl`, `modprobe`, `ifup`
  std::set<std::string>
      running;  ///< `systemd`, `NetworkManager`, `systemd-networkd`, `networking` (ifupdown)
  bool starting = false;          ///< systemd is still starting units, maybe a network manager
  bool netplanFolder = false;     ///< /etc/netplan exists
  bool interfacesFolder = false;  ///< /etc/network/interfaces includes /etc/network/interfaces.d
  std::vector<SetupNetdev> netdevs;
  std::set<std::string> otherNames;  ///< names of interfaces without hardware: bonds, bridges, ...
  std::map<PciAddress, std::set<PciAddress>> behind;  ///< bridge to the functions on its bus
  std::set<PciAddress> functions;
  bool gpu = false;  ///< has an NVIDIA GPU
  bool gpuDriver = false;
  bool nvlinkDisabled = false;      ///< in the loaded driver
  bool peerMemoryLoaded = false;    ///< nvidia_peermem, or the older nv_peer_mem
  bool peerMemoryOlder = false;     ///< the loaded one is nv_peer_mem, which loads itself at boot
  bool peerMemoryLoadable = false;  ///< the kernel's modules include nvidia_peermem
  std::map<std::string, FileState> files;       ///< the requested files, by path
  std::map<std::string, std::string> unusable;  ///< files that cannot be changed, with the reason
  std::set<std::string> missingFolders;         ///< missing directories of the requested files
};

/// Whether an interface's name is safe in the files of all network managers; the kernel accepts
/// nearly every byte.
bool isUsableName(const std::string& name);

/// Reads everything but files. `root` is a prefix of every path in the guest (for tests; otherwise
/// empty). Throws AgentUnavailable.
SetupView readSetupView(agent::Agent& agent, const std::string& root);

/// Adds these files. Throws AgentUnavailable, and Error when the guest's output is invalid.
void readFiles(agent::Agent& agent, const std::string& root, const std::vector<std::string>& paths,
               SetupView& view);

/// The function at the end of a path of bridges (topology::guestPath). Only the first bus number of
/// the path is used; all others come from the guest. nullopt when the guest has no such function.
std::optional<PciAddress> functionAt(const SetupView& view, const std::vector<PciAddress>& path);

/// `text` (address with prefix length) as the kernel writes it; nullopt when it is invalid.
std::optional<std::string> canonicalAddress(const std::string& text);

}  // namespace vfpass::setup
