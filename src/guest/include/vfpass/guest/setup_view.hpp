#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "vfpass/guest/agent.hpp"
#include "vfpass/pci_address.hpp"

namespace vfpass::guest {

/// What is set on a network interface of the guest now.
struct NetdevState {
  unsigned mtu = 0;
  bool up = false;
  /// Lasting ones with prefix length, in canonical spelling: neither leased by DHCP nor link-local.
  std::set<std::string> addresses;
  std::optional<unsigned> arpAnnounce;
  std::optional<unsigned> arpIgnore;

  bool operator==(const NetdevState&) const = default;
};

/// An interface that a device stands behind: no bond, bridge or VLAN.
struct SetupNetdev {
  std::string name;      ///< letters, digits, `_.:-`: others are not taken
  std::string address;   ///< hardware address, lower case: 6 bytes, of InfiniBand 20
  std::string function;  ///< its PCI function in the guest; empty: none
  NetdevState state;
};

/// A file of the guest, or that there is none.
struct FileState {
  bool exists = false;
  std::string content;
  unsigned mode = 0;
  unsigned user = 0;
  unsigned group = 0;

  bool operator==(const FileState&) const = default;
};

/// What guest-setup has to know of the guest. All of it is the guest's word.
struct SetupView {
  std::set<std::string> tools;  ///< `ip`, `netplan`, `nmcli`, `networkctl`, `modprobe`, `ifup`
  std::set<std::string>
      running;  ///< `systemd`, `NetworkManager`, `systemd-networkd`, `networking` (ifupdown)
  bool starting = false;  ///< systemd has not started everything yet, such as a network manager
  bool netplanFolder = false;     ///< /etc/netplan is there
  bool interfacesFolder = false;  ///< /etc/network/interfaces reads /etc/network/interfaces.d
  std::vector<SetupNetdev> netdevs;
  std::map<PciAddress, std::set<PciAddress>> behind;  ///< bridge to the functions on its bus
  std::set<PciAddress> functions;
  bool gpu = false;  ///< an NVIDIA GPU is there
  bool gpuDriver = false;
  bool nvlinkDisabled = false;                  ///< in the driver as it is loaded
  bool peerMemoryLoaded = false;                ///< nvidia_peermem, or its forerunner nv_peer_mem
  bool peerMemoryLoadable = false;              ///< nvidia_peermem is among the kernel's modules
  std::map<std::string, FileState> files;       ///< those that were asked for, by path
  std::map<std::string, std::string> unusable;  ///< path and why it cannot be changed
  std::set<std::string> missingFolders;         ///< of those files
};

/// Asks the guest for everything but files. `root` is put before every path of the guest (tests;
/// empty otherwise). Throws AgentUnavailable.
SetupView readSetupView(Agent& agent, const std::string& root);

/// Adds these files. Throws AgentUnavailable, and Error when the guest's answer makes no sense.
void readFiles(Agent& agent, const std::string& root, const std::vector<std::string>& paths,
               SetupView& view);

/// The function at the end of a path of bridges (topology::guestPath): only the first bus number
/// counts, all others are as the guest shows them. nullopt when the guest shows no such function.
std::optional<PciAddress> functionAt(const SetupView& view, const std::vector<PciAddress>& path);

/// `text` (address with prefix length) as the kernel writes it; nullopt when it is none.
std::optional<std::string> canonicalAddress(const std::string& text);

}  // namespace vfpass::guest
