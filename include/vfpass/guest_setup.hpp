#pragma once

#include <string>
#include <vector>

#include "vfpass/identifiers.hpp"

namespace vfpass {

/// One file of a guest that changes. What it holds is the guest's word: escaped wherever it is
/// shown.
struct GuestFileChange {
  std::string path;
  std::string reason;
  bool before = true;  ///< it is there
  bool after = true;   ///< it will be there
  std::string mode;    ///< `0644 -> 0600`; empty: it keeps its mode
  std::string diff;    ///< hunks without file names
};

/// What changes at once on one interface of a guest.
struct GuestPortChange {
  std::string entry;
  std::string netdev;
  std::vector<std::string> changes;  ///< `mtu 1500 -> 9000`
};

/// What `vfpass guest-setup` would change, or has changed.
struct GuestSetupReport {
  std::string domainName;
  Uuid domain;
  bool undo = false;
  std::string tool;  ///< who sets addresses there: netplan, NetworkManager, systemd-networkd, ip
  std::vector<GuestFileChange> files;
  std::vector<GuestPortChange> ports;
  std::vector<std::string> actions;  ///< the rest, in words
  std::vector<std::string> notes;    ///< may hold the guest's word
  bool applied = false;
};

}  // namespace vfpass
