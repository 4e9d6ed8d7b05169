#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>

#include "vfpass/guest/setup_view.hpp"

namespace vfpass::guest {

/// Where the guest keeps what guest-setup found before its first change: the guest's disk and this
/// file travel together, also to another host.
inline constexpr const char* recordFolder = "/var/lib/vfpass-setup";
inline constexpr const char* recordPath = "/var/lib/vfpass-setup/originals.json";

/// What one port looked like, and which of its settings are ours now.
struct RecordedPort {
  NetdevState original;
  std::set<std::string> addresses;  ///< given by us
  bool mtu = false;
  bool up = false;
  bool arp = false;
};

/// Written before the first change of a thing, and from then on kept: undo restores it.
struct SetupRecord {
  std::map<std::string, FileState> files;
  std::set<std::string> folders;              ///< that were not there
  std::map<std::string, RecordedPort> ports;  ///< by MAC address or port GUID
  bool peerMemory = false;                    ///< nvidia_peermem was not loaded, and is by us
};

/// True for the files that guest-setup may write: a record in the guest can name no others.
bool isSetupPath(const std::string& path);

std::string encodeRecord(const SetupRecord& record);

/// Reads what encodeRecord wrote. Throws Error when it makes no sense: nothing can be restored
/// from it, and to overwrite it would lose the originals.
SetupRecord decodeRecord(const std::string& text);

}  // namespace vfpass::guest
