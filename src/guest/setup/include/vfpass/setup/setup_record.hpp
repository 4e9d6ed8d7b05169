#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>

#include "vfpass/setup/setup_view.hpp"

namespace vfpass::setup {

/// The record of the guest's state before the first change of guest-setup. It is stored in the
/// guest, so that it moves with the guest's disk to another host.
inline constexpr const char* recordFolder = "/var/lib/vfpass-setup";
inline constexpr const char* recordPath = "/var/lib/vfpass-setup/originals.json";

/// The original state of a port, and which of its settings vfpass has set.
struct RecordedPort {
  NetdevState original;
  std::set<std::string> addresses;  ///< set by vfpass
  bool mtu = false;
  bool up = false;
  bool arp = false;
  /// The interface's name before vfpass first gave it one, and the name that vfpass gave it; both
  /// are empty if it gave none.
  std::string originalName = {};
  std::string givenName = {};
};

/// The state that undo restores. Each file and port is recorded before its first change and kept
/// from then on.
struct SetupRecord {
  std::map<std::string, FileState> files;
  std::set<std::string> folders;              ///< directories that vfpass created
  std::map<std::string, RecordedPort> ports;  ///< by MAC address or port GUID
  bool peerMemory = false;                    ///< vfpass loaded nvidia_peermem
};

/// True for the files that guest-setup may write. A record that names any other file is rejected.
bool isSetupPath(const std::string& path);

std::string encodeRecord(const SetupRecord& record);

/// Reads what encodeRecord() wrote. Throws Error when it is invalid, since overwriting it would
/// lose the original state.
SetupRecord decodeRecord(const std::string& text);

}  // namespace vfpass::setup
