#pragma once

#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

#include "vfpass/events/history.hpp"
#include "vfpass/finding.hpp"
#include "vfpass/guest_setup.hpp"
#include "vfpass/hand_over.hpp"
#include "vfpass/holder.hpp"
#include "vfpass/imported_mapping.hpp"
#include "vfpass/inventory.hpp"
#include "vfpass/lease.hpp"
#include "vfpass/plan.hpp"
#include "vfpass/report/table.hpp"
#include "vfpass/topology/propose_mapping.hpp"

namespace vfpass::report {

// The reports of single commands; NAME_report.cpp writes that of NAME. Those of `diagnose`,
// `history` and `host guids` are with those of `doctor`, of results and of `host`.

/// `vfpass pf list`: one row per PF, then one line for each PF whose port has a fault
/// (faultOfPort()), and for each of `others`, the NICs without SR-IOV, and for each function that
/// only looks like a NIC. Values that the host cannot observe are `?` in text and
/// null in JSON; `-` means none. JSON: docs/json/pf-list.schema.json.
void writePfs(std::ostream& out, const Inventory& inventory, const std::vector<Device>& others,
              const Style& style);

/// Whom the definitions of domains and networks name as users of VFs; nullopt: unknown.
using DefinedUsers = std::optional<std::vector<DeviceUser>>;

/// `vfpass vf list`: one row per VF of the inventory's PFs, with its lease and its users. The text
/// has columns for users and for the quarantine only if there is any. JSON:
/// docs/json/vf-list.schema.json.
void writeVfs(std::ostream& out, const Inventory& inventory, const std::vector<Lease>& leases,
              const DefinedUsers& users, const Style& style);

/// One mapping file and the results of its check.
struct CheckEntry {
  std::string vm;                           ///< empty if the file is unreadable up to there
  std::string file;                         ///< empty for problems with several files
  std::vector<std::string> problems;        ///< errors in the file: `file:line:column: ...`
  std::vector<std::string> objections;      ///< why it cannot be attached on this host
  std::optional<std::size_t> pendingSteps;  ///< steps that attach would run; nullopt: not checked
  std::vector<std::string> facts = {};      ///< about its devices, attachable or not
  bool isHostPolicy = false;                ///< the file is a host.yaml
};

/// `vfpass check`: a verdict per mapping, followed by every error in the file and every problem
/// with this host. JSON: docs/json/check.schema.json.
/// `place` says where mappings are: without an entry, the text names it.
void writeCheck(std::ostream& out, const std::vector<CheckEntry>& entries, const std::string& place,
                const Style& style);

/// One property of a PF: its value in host.yaml and its current value.
struct HostSetting {
  std::string name;                   ///< as in host.yaml: `virtual-function-count`, `mtu`, ...
  std::optional<std::string> wanted;  ///< nullopt: not in host.yaml
  std::optional<std::string> found;   ///< nullopt: not observable

  /// An unobservable value always differs.
  [[nodiscard]] bool differs() const { return wanted && wanted != found; }
};

/// One PF of the host, or an entry of host.yaml that matches no PF.
struct HostEntry {
  std::string name;     ///< the PF's address, or the selector of host.yaml
  std::string netdev;   ///< may be empty
  bool listed = false;  ///< host.yaml has an entry for it
  std::vector<HostSetting> settings;
  std::vector<Step> steps;            ///< steps that apply did or would run
  std::vector<std::string> failures;  ///< messages of failed steps
  bool differs = false;               ///< apply has steps to run

  /// A setting differs, apply has steps to run, or something failed.
  [[nodiscard]] bool pending() const;
};

/// One SoftRoCE link, from host.yaml or found on the host.
struct SoftRoceEntry {
  std::string name;                   ///< of the RDMA device
  std::optional<std::string> wanted;  ///< netdev; nullopt: not in host.yaml
  std::optional<std::string> found;   ///< netdev; nullopt: the link does not exist
  bool madeByVfpass = false;          ///< apply removes it once host.yaml drops it
  std::vector<Step> steps;            ///< steps that apply did or would run
  std::vector<std::string> failures;  ///< messages of failed steps

  /// A link that vfpass created and host.yaml no longer names differs; links of others may stay.
  [[nodiscard]] bool differs() const { return wanted ? wanted != found : madeByVfpass; }
  [[nodiscard]] bool pending() const { return differs() || !failures.empty(); }
};

/// Whether the memory of GPUs is checked at the end of their leases.
struct MemoryCheckEntry {
  bool wanted = false;        ///< in host.yaml
  std::optional<bool> found;  ///< what is applied; nullopt: this user cannot tell

  [[nodiscard]] bool differs() const { return found && *found != wanted; }
};

struct HostReport {
  std::vector<HostEntry> pfs;
  std::vector<SoftRoceEntry> softRoce;
  std::optional<MemoryCheckEntry> memoryCheck = {};  ///< nullopt: of a captured tree
};

/// `vfpass host show`, `host apply`: each PF's settings, wanted and found, then the steps;
/// the same for SoftRoCE links. Only JSON (docs/json/host.schema.json) has the failures, too.
void writeHost(std::ostream& out, const HostReport& report, const Style& style);

/// Which checks the text of doctor lists below the problems.
enum class ListedChecks { none, all };

/// `vfpass doctor`: the first problem in full, further problems with their remedies, and which
/// checks could not observe anything; with ListedChecks::all instead one line per check and result.
/// JSON has every finding: docs/json/doctor.schema.json.
void writeDoctor(std::ostream& out, const std::vector<Diagnosis>& diagnoses, ListedChecks listed,
                 const Style& style);

/// `vfpass guest-setup`: each file as a unified diff, then the immediate changes to the interfaces.
/// JSON: docs/json/guest-setup.schema.json.
void writeGuestSetup(std::ostream& out, const GuestSetupReport& report, const Style& style);

/// Writes the operations of `vfpass history`, in their order; as JSON by
/// docs/json/history.schema.json.
void writeHistory(std::ostream& out, const std::vector<events::PastOperation>& operations,
                  const Style& style);

/// A record, and whether this host has sealed it.
struct HandOver {
  HandOverRecord record;
  bool isSealed = false;
};

/// `vfpass quarantine records`. JSON: docs/json/hand-overs.schema.json.
void writeHandOvers(std::ostream& out, const std::vector<HandOver>& records, const Style& style);

/// The devices in quarantine. JSON: docs/json/quarantine.schema.json.
void writeQuarantine(std::ostream& out, const std::vector<QuarantinedDevice>& devices,
                     const Style& style);

/// A mapping file for `vm` as `vfpass init` prints it, with the reasons as comments. `command` is
/// the command line that requested it. JSON: docs/json/init.schema.json.
struct ProposalReport {
  std::string vm;
  std::string command;
  std::string schemaFile;  ///< of mappings; editors that read it complete and check the file
  Topology topology;
  topology::Proposal proposal;
  /// With `nvlink: partition`, if the fabric manager lists its partitions.
  std::optional<topology::PartitionJudgement> partition = {};
  std::string file;  ///< that has the mapping; empty: none was written
};

void writeProposal(std::ostream& out, const ProposalReport& report, const Style& style);
/// The text of the file itself, without the advice to save it.
void writeProposalYaml(std::ostream& out, const ProposalReport& report);

/// What `vfpass edit` did. JSON only; people read its notes.
void writeEditedMapping(std::ostream& out, const std::string& file, bool changed);

/// A command, and its use in a few words.
struct NextCommand {
  std::string line;
  std::string use;
};

/// The file that a mapping or host.yaml was written to, and what users do next. Text only.
void writeCreatedFile(std::ostream& out, const std::string& file,
                      const std::vector<NextCommand>& next);

/// `opensm` is a fragment of OpenSM's partitions.conf (doc/partition-config.txt in its sources).
enum class GuidFormat { table, opensm, csv };

/// The GUIDs that a host's leases give to InfiniBand VFs.
struct GuidList {
  std::string host;           ///< name of the host
  std::vector<Lease> leases;  ///< of InfiniBand VFs with a port GUID
  /// The partition of these VFs, without the bit for full membership; required for `opensm`.
  std::optional<std::uint16_t> partition;
};

/// `vfpass host guids`. Without leases, a table says so, and the other formats have no row or rule.
/// JSON, whatever the format: docs/json/guids.schema.json.
void writeGuids(std::ostream& out, const GuidList& list, GuidFormat format, const Style& style);

/// `unseen`: a part that could not be read and may hide a problem.
enum class Rank { problem, unseen, warning };

/// Something that another command reports of a VM.
struct DiagnosedItem {
  Rank rank = Rank::problem;
  std::string source;   ///< the command that reports it: `vfpass doctor --vm train0`
  std::string subject;  ///< a check's key and its device, an entry of the mapping; may be empty
  std::string what;
  std::string remedy;  ///< may be empty
};

/// What `vfpass diagnose VM` has found, each rank in the order of the chain: host, hook, leases,
/// guest.
struct DiagnoseReport {
  std::string vm;
  std::vector<DiagnosedItem> items;
};

/// Problems first, then what could not be seen, then warnings; the last line names the first
/// problem. JSON: docs/json/diagnose.schema.json.
void writeDiagnose(std::ostream& out, DiagnoseReport report, const Style& style);

/// `vfpass import VM`.
struct ImportReport {
  std::string vm;
  std::string command;     ///< the command line, for the first comment
  std::string schemaFile;  ///< of mappings
  ImportedMapping mapping;
};

/// `vfpass import --host`.
struct ImportHostReport {
  std::string command;
  ImportedHost host;
};

/// The mapping, with comments that state where each value is from and what has no entry.
std::string mappingText(const ImportReport& report);

/// host.yaml, with comments that name the files that must no longer set the same.
std::string hostText(const ImportHostReport& report);

/// Writes `text`, or with JSON the data and the text. `file`: where the text has been saved; empty:
/// nowhere. JSON: docs/json/import.schema.json.
void writeImport(std::ostream& out, const ImportReport& report, const std::string& text,
                 const std::string& file, const Style& style);
void writeImport(std::ostream& out, const ImportHostReport& report, const std::string& text,
                 const std::string& file, const Style& style);

}  // namespace vfpass::report
