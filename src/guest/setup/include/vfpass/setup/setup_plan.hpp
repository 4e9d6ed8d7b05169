#pragma once

#include <optional>
#include <string>
#include <vector>

#include "vfpass/mac_guid_uuid.hpp"
#include "vfpass/mapping.hpp"
#include "vfpass/setup/setup_record.hpp"
#include "vfpass/setup/setup_view.hpp"

namespace vfpass::setup {

/// One VF of the running guest, and its guest settings from the mapping.
struct WantedPort {
  std::string entry;  ///< name in the mapping
  bool infiniband = false;
  std::string address;   ///< MAC; for InfiniBand the port GUID, which ends the hardware address
  std::string function;  ///< PCI address in the guest; empty: unknown
  bool teamed = false;   ///< its partner and the interface above them have the same MAC
  GuestNetwork network;
};

/// The state that a set-up is to reach. An empty one plans the undo.
struct DesiredSetup {
  Uuid domain;
  std::vector<WantedPort> ports;
  NcclSettings nccl;
  std::string ncclTopology;     ///< content of the file; empty: no file
  bool peerMemory = false;      ///< load nvidia_peermem, if the guest has a GPU
  bool nvlinkDisabled = false;  ///< `nvlink: disabled`, if the guest has a GPU
  std::vector<std::string> notes;
};

/// One file to change in the guest.
struct SetupFile {
  std::string path;
  std::string reason;
  FileState before;
  FileState after;
};

/// One interface in the guest whose settings change immediately.
struct SetupPort {
  std::string entry;  ///< the mapping's name; the address if the mapping no longer has the entry
  std::string netdev;
  bool byTool = false;  ///< the network tool sets addresses and MTU from its file
  NetdevState before;
  NetdevState after;
  std::string rename = {};  ///< the name that it gets now; empty: it keeps its name
};

/// All changes of a set-up or an undo, with the state before and after.
struct SetupPlan {
  std::string tool;  ///< netplan, NetworkManager, systemd-networkd, ip
  bool undo = false;
  std::vector<SetupFile> files;
  std::vector<SetupPort> ports;
  bool loadPeerMemory = false;
  bool unloadPeerMemory = false;
  FileState modulesBefore;         ///< the file in modules-load.d, if the module is to be loaded
  SetupRecord record;              ///< to write before the first change
  FileState recordBefore;          ///< the record's current file
  std::vector<std::string> notes;  ///< contain text from the guest: escape before printing

  [[nodiscard]] bool empty() const {
    return files.empty() && ports.empty() && !loadPeerMemory && !unloadPeerMemory &&
           !(undo && recordBefore.exists);
  }
};

/// All files that planning needs; read them first.
std::vector<std::string> setupPaths(const DesiredSetup& desired, const SetupRecord& record);

/// The changes from the current to the desired state. Settings that an earlier set-up made and that
/// are no longer desired return to the recorded state. Throws Error when a file has to change but
/// cannot (a link, too large).
SetupPlan planSetup(const DesiredSetup& desired, const SetupView& view, const SetupRecord& record);

/// Restores the recorded state. In /etc/nccl.conf only our block is removed, so that lines which
/// others added stay.
SetupPlan planUndo(const SetupView& view, const SetupRecord& record);

/// The plan when nvidia_peermem does not load: it is not loaded at boot either, because the guest
/// would then have a failed unit (systemd-modules-load); an earlier line of ours is removed.
SetupPlan withoutPeerMemory(const SetupPlan& plan);

/// The plan that rolls this one back.
SetupPlan reversed(const SetupPlan& plan);

}  // namespace vfpass::setup
