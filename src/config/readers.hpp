#pragma once

#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "problem_list.hpp"
#include "vfpass/config/configuration.hpp"
#include "vfpass/finding.hpp"
#include "vfpass/mapping.hpp"
#include "vfpass/soft_roce.hpp"
#include "yaml_tree.hpp"

namespace vfpass::config {

/// Reads the text of one mapping file. The result is valid only if no problem was added.
Mapping readMapping(const std::string& text, ProblemList& problems);

/// The contents of host.yaml.
struct HostFile {
  HostPolicy policy;
  std::vector<SoftRocePolicy> softRoce;
  std::vector<AcceptedFinding> accepted;
};

/// Whether the text has keys of a host.yaml and not those of a mapping.
bool isHostFile(const std::string& text);

/// Reads the text of host.yaml. The result is valid only if no problem was added.
HostFile readHostFile(const std::string& text, ProblemList& problems);

/// The parts of the mapping that an entry of `vfs:` refers to.
struct MappingContext {
  std::set<std::string> functionNames;
  std::set<Allowance> allow;
  std::string topology;
};

/// Refuses `adopt: true` in a mapping whose topology is not flat. `value`: of `adopt:`.
void checkAdoptedTopology(Node* value, bool adopt, const MappingContext& context,
                          ProblemList& problems);

/// Reads one entry of `vfs:` and checks what a schema cannot express. Skips values that were
/// already refused, so that all problems of a file are reported at once.
MappedVf readVf(Node& node, const MappingContext& context, ProblemList& problems);

/// Reads `pf:`. nullopt if it is missing or was refused.
std::optional<PfSelector> readPfSelector(Node* node, ProblemList& problems);

/// Reads a PCI address that the schema accepted; nullopt if it was refused.
std::optional<PciAddress> readPciAddress(Node* node, ProblemList& problems);

/// The text of a file that only root or the caller can have written: a regular file, not a symbolic
/// link, owned by root or the effective user, not writable by others, at most 1 MiB. Any other file
/// is reported as a problem and gives nullopt.
std::optional<std::string> readTrustedFile(const std::filesystem::path& file,
                                           ProblemList& problems);

/// The same rule for a directory, because anyone who can write to it can replace its files. Returns
/// false after reporting a problem.
bool checkTrustedFolder(const std::filesystem::path& folder, ProblemList& problems);

/// Why `ADDRESS/PREFIX` is not valid as the address (IPv4 or IPv6) of a guest interface; nullopt if
/// it is valid.
std::optional<std::string> guestAddressFault(const std::string& text);

/// Why this name, which has the schema's form, is not possible as the fixed name of an interface in
/// the guest; nullopt if it is.
std::optional<std::string> guestNameFault(const std::string& name);

/// One problem for each VF whose interface has the name of an earlier one's. Mappings of other
/// guests may have the same names.
std::vector<Problem> repeatedGuestNames(const Mapping& mapping);

}  // namespace vfpass::config
