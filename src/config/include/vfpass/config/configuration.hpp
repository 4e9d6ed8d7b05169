#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "vfpass/mapping.hpp"
#include "vfpass/soft_roce.hpp"

namespace vfpass::config {

/// One mistake in a file a user wrote.
struct Problem {
  SourcePlace place;
  std::string message;  ///< what is wrong, and what was expected
  std::string hint;     ///< "did you mean `spoof-check`?"; may be empty
};

std::string toString(const Problem& problem);  ///< `file:line:column: message; hint`

/// All that the configuration folder holds. Mappings with problems are left out.
struct Configuration {
  std::vector<Mapping> mappings;         ///< by file name
  HostPolicy host;                       ///< host.yaml, but for its SoftRoCE links
  std::vector<SoftRocePolicy> softRoce;  ///< those
  std::vector<Problem> problems;         ///< every mistake of every file, by file and line
};

/// Reads `vms/*.yaml` and `host.yaml` below the folder. A missing folder reads as empty. Files that
/// are not root's (not the caller's own, for an ordinary user), world-writable, links, not plain
/// files or over 1 MiB are refused as problems.
Configuration loadConfiguration(const std::filesystem::path& directory);

/// One mapping file by path, as `vfpass check FILE` reads it; problems are appended.
std::vector<Mapping> loadMappingFile(const std::filesystem::path& file,
                                     std::vector<Problem>& problems);

/// Mistakes that only several mappings together have: one MAC, GUID or VM twice, one VF (same PF
/// selector and index) claimed twice, one GPU twice. Both places are named.
std::vector<Problem> crossCheck(const std::vector<Mapping>& mappings);

/// The mapping whose `vm:` is this domain's name or its UUID (in any case, with or without dashes);
/// nullptr when there is none. File names mean nothing. Two that match: Error (ExitCode::badInput)
/// that names both places. The pointer lives as long as the configuration.
const Mapping* findMapping(const Configuration& configuration, const std::string& name,
                           const std::string& uuidText);

/// The JSON schema that the tool itself uses, as text (`vfpass check --schema` prints it).
const std::string& mappingSchema();
const std::string& hostSchema();

}  // namespace vfpass::config
