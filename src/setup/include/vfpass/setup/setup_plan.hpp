#pragma once

#include <string>
#include <vector>

#include "vfpass/setup/desired_setup.hpp"
#include "vfpass/setup/setup_record.hpp"
#include "vfpass/setup/setup_view.hpp"

namespace vfpass::setup {

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

/// The state of a port after the plan's changes. Addresses outside the plan stay as they are now: a
/// network manager may have added or removed some.
NetdevState expectedState(const SetupPort& port, const NetdevState& now);

/// The first port that differs from the plan, and its missing changes; empty: none differs.
std::string pendingChanges(const SetupPlan& plan, const SetupView& view);

/// Text for each change of a port: `name ens7 -> rail0`, `mtu 1500 -> 9000`, `address
/// +192.168.100.10/24`.
std::vector<std::string> describeChanges(const SetupPort& port);

}  // namespace vfpass::setup
