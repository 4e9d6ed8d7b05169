#pragma once

#include <string>
#include <vector>

#include "vfpass/guest/setup_record.hpp"
#include "vfpass/guest/setup_view.hpp"
#include "vfpass/guest/setup_wish.hpp"

namespace vfpass::guest {

/// One file of the guest that changes.
struct SetupFile {
  std::string path;
  std::string reason;
  FileState before;
  FileState after;
};

/// One interface of the guest whose settings change now.
struct SetupPort {
  std::string entry;  ///< the mapping's name; the address where the mapping has it no more
  std::string netdev;
  bool byTool = false;  ///< addresses and MTU come from the network tool's file
  NetdevState before;
  NetdevState after;
};

/// All that a set-up (or an undo) changes in the guest, both ways.
struct SetupPlan {
  std::string tool;  ///< netplan, NetworkManager, systemd-networkd, ip
  bool undo = false;
  std::vector<SetupFile> files;
  std::vector<SetupPort> ports;
  bool loadPeerMemory = false;
  bool unloadPeerMemory = false;
  SetupRecord record;              ///< as it is to be kept
  FileState recordBefore;          ///< the record's file as it is there
  std::vector<std::string> notes;  ///< hold the guest's word: escape them

  [[nodiscard]] bool empty() const {
    return files.empty() && ports.empty() && !loadPeerMemory && !unloadPeerMemory &&
           !(undo && recordBefore.exists);
  }
};

/// Every file that a plan for this wish has to know: read them before planning.
std::vector<std::string> setupPaths(const SetupWish& wish, const SetupRecord& record);

/// What differs from the wish. What was ours and is wished for no more goes back to what the record
/// has. Throws Error when a file that has to change cannot (a link, too large).
SetupPlan planSetup(const SetupWish& wish, const SetupView& view, const SetupRecord& record);

/// Everything back to what the record has. In /etc/nccl.conf only our block is ours: what others
/// wrote there since stays.
SetupPlan planUndo(const SetupView& view, const SetupRecord& record);

/// The plan that takes this one back.
SetupPlan reversed(const SetupPlan& plan);

/// The first port that is not as the plan wants it, in words; empty: all are.
std::string unreached(const SetupPlan& plan, const SetupView& view);

/// In words what changes on a port: `mtu 1500 -> 9000`, `address +192.168.100.10/24`.
std::vector<std::string> describeChanges(const SetupPort& port);

}  // namespace vfpass::guest
