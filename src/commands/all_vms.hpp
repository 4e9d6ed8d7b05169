#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "commands.hpp"
#include "vfpass/error.hpp"
#include "vfpass/lease.hpp"

namespace vfpass::commands {

/// `--all` and `--stop-on-failure`.
struct AllOptions {
  bool all = false;
  bool stopOnFailure = false;
  std::vector<std::string> unsuitable;  ///< specified options that concern one VM
};

/// Adds both; `description` is that of --all.
void addAll(CLI::App& command, AllOptions& options, const std::string& description);

/// Those of these options, such as `--html`, that the command line specifies.
std::vector<std::string> specifiedAmong(const CLI::App& command,
                                        const std::vector<std::string>& options);

/// Throws (bad input) unless there is either a VM or --all, or for an option that concerns one VM.
void requireVmOrAll(const std::string& command, const std::string& vm, const AllOptions& options);

/// One of all VMs.
struct ListedVm {
  std::string name;
  std::optional<Uuid> uuid;  ///< nullopt: only the name in its mapping is known
};

struct VmList {
  std::vector<ListedVm> vms;    ///< in the order in which the command runs
  std::vector<Error> failures;  ///< why there may be further ones; bad input
  std::string none;             ///< if there are none: `no VM has leases`
};

/// The VMs with a mapping, also one with mistakes. Warns about files that may be further mappings.
VmList mappedVms(Session& session);

/// The VMs of these leases.
VmList leasedVms(const std::vector<Lease>& leases);

/// A command for all VMs.
struct AllRun {
  std::string command;
  bool stopOnFailure = false;
  bool dryRun = false;  ///< its texts are shown together at the end
  /// Throws Error if the command cannot begin.
  std::function<VmList(Session&)> list;
  /// The command for one VM, a UUID or a name. Throws Error if it fails.
  std::function<ExitCode(Session&, const std::string& vm)> run;
};

/// Runs the command for one VM after another, each in a session of its own, whatever the result of
/// the others, and writes their results. The first signal ends it after the VM that it works on, as
/// the command ends for that VM alone: throws Cancelled after the results. Returns the worst exit
/// code.
ExitCode runForAll(Session& session, const AllRun& run);

/// The exit code of a command of several parts, of those of its parts: the first of these that one
/// of them has (docs/commands.md): 2, 5, 1, 4, 6, 3, otherwise 0. What the administrator has to
/// decide comes before what another try may resolve.
ExitCode worstOf(const std::vector<ExitCode>& codes);

}  // namespace vfpass::commands
