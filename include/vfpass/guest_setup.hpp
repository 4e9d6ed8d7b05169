#pragma once

#include <string>
#include <vector>

#include "vfpass/mac_guid_uuid.hpp"

namespace vfpass {

/// One changed file of a guest. Its content comes from the guest: escape it on output.
struct GuestFileChange {
  std::string path;
  std::string reason;
  bool before = true;  ///< the file exists
  bool after = true;   ///< the file will exist
  std::string mode;    ///< `0644 -> 0600`; empty: unchanged
  std::string diff;    ///< hunks without file names
};

/// Changes of one guest interface that take effect at once.
struct GuestPortChange {
  std::string entry;
  std::string netdev;
  std::vector<std::string> changes;  ///< `mtu 1500 -> 9000`
};

/// The changes that `vfpass guest-setup` would make, or has made.
struct GuestSetupReport {
  std::string domainName;
  Uuid domain;
  bool undo = false;
  std::string tool;  ///< sets addresses there: netplan, NetworkManager, systemd-networkd, ip
  std::vector<GuestFileChange> files;
  std::vector<GuestPortChange> ports;
  std::vector<std::string> actions;  ///< all other changes, described
  std::vector<std::string> notes;    ///< may contain guest-controlled text
  bool applied = false;
};

}  // namespace vfpass
