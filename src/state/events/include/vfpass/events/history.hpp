#pragma once

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "vfpass/pci_address.hpp"

namespace vfpass::events {

/// Which operations to read from the journal.
struct HistoryQuery {
  std::string vm;     ///< name or UUID; empty: all VMs and the host
  std::string since;  ///< as journalctl(1) reads it; empty: all
  unsigned limit = 1000;
  std::filesystem::path directory;  ///< absolute; empty: the journal of this host
};

/// An entry of the journal about an operation that has ended.
struct PastOperation {
  std::chrono::sys_time<std::chrono::microseconds> time;
  std::string messageId;
  std::string operation;
  std::string result;
  std::string vm;      ///< empty: none
  std::string vmUuid;  ///< empty: not known
  std::string message;
  std::string remedy;
  std::string user;  ///< who ran vfpass; empty: a service
  std::optional<unsigned> userId;
  std::string unit;  ///< the systemd service that ran it; empty: none
  std::vector<PciAddress> pfs;
  std::vector<PciAddress> vfs;
  std::vector<PciAddress> functions;
};

struct History {
  std::vector<PastOperation> operations;  ///< oldest first
  std::vector<std::string> remarks;       ///< everything else that journalctl printed
};

/// The call of journalctl(1), with its absolute path. It only selects entries of root's processes
/// (`_UID`, which the journal itself records): every user can write entries with our fields.
std::vector<std::string> journalctlCommand(const HistoryQuery& query);

/// Reads the output of that call.
History readHistory(const std::string& output);

}  // namespace vfpass::events
