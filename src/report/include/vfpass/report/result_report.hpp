#pragma once

#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "vfpass/error.hpp"
#include "vfpass/plan.hpp"
#include "vfpass/report/table.hpp"

namespace vfpass::report {

/// What keeps VFs that vfpass leaves to a domain after a reboot; empty: nothing was left.
struct KeptDevices {
  std::vector<std::string> commands;  ///< for a shell, in this order
  std::string unitName;               ///< of a systemd unit
  std::string unit;                   ///< its text; runs the commands at boot
};

/// The number of VFs and the settings of these leases, of VFs of `inventory`. Leases of PCI
/// functions need nothing: libvirt binds them at the start of their domain.
KeptDevices keptDevices(const std::string& domainName, const std::vector<Lease>& leases,
                        const Inventory& inventory);

/// What a command that changes something has done, for programs. People read the same in the lines
/// on stderr while it happens.
struct Result {
  std::string command;         ///< as on the command line: `attach`
  std::vector<Plan> executed;  ///< completely, in this order
  std::vector<std::string> notes;
  std::vector<std::string> warnings;
  std::vector<Error> failures;  ///< of parts, where the command continued with the others
  KeptDevices kept = {};        ///< `detach --keep` only
};

/// JSON only: docs/json/result.schema.json.
void writeResult(std::ostream& out, const Result& result);

/// One VM of a command with --all.
struct VmResult {
  std::string vm;            ///< its name
  std::optional<Uuid> uuid;  ///< nullopt: only the name in its mapping is known
  bool begun = false;
  std::optional<ExitCode> code;  ///< nullopt: not begun, or ended by a signal
  bool changed = false;          ///< a plan was executed completely
  std::string message;           ///< the error or signal that has ended it; may be empty
  std::string document;          ///< that of the command for this VM, with --json; may be empty
};

/// The result of a command for all VMs.
struct AllResult {
  std::string command;  ///< as on the command line: `attach`
  std::vector<VmResult> vms;
  std::vector<Error> failures;  ///< why there may be further VMs
  ExitCode code = ExitCode::done;
};

/// A line for each VM, and how many have which result. JSON: docs/json/all.schema.json.
void writeAll(std::ostream& out, const AllResult& result, const Style& style);

/// The document of a command that failed. JSON only: docs/json/error.schema.json.
void writeError(std::ostream& out, const Error& error);

/// The actions of a command, one line each. JSON: docs/json/actions.schema.json.
void writeActions(std::ostream& out, const std::vector<std::string>& actions, const Style& style);

/// The files that `vfpass snapshot` wrote.
struct SnapshotReport {
  std::string target;
  std::map<std::string, std::size_t> files;  ///< number of files per name: 114 of `class`
  std::size_t links = 0;
  std::size_t devices = 0;  ///< PCI functions
  std::uintmax_t bytes = 0;
};

/// Lists the files of a snapshot, so that users know what they pass on with it, and ends with one
/// line: where it is, how much it is, and the command that reads it. JSON:
/// docs/json/snapshot.schema.json.
void writeSnapshot(std::ostream& out, const SnapshotReport& report, const Style& style);

}  // namespace vfpass::report
