#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "vfpass/error.hpp"
#include "vfpass/finding.hpp"
#include "vfpass/mapping.hpp"
#include "vfpass/soft_roce.hpp"

namespace vfpass::config {

/// One mistake in a configuration file.
struct Problem {
  SourcePlace place;
  std::string message;  ///< the fault, and what was expected
  std::string hint;     ///< "did you mean `spoof-check`?"; may be empty
};

std::string toString(const Problem& problem);  ///< `file:line:column: message; hint`

/// The same problems for an Error.
std::vector<Mistake> mistakesOf(const std::vector<Problem>& problems);

/// A file of `vms/` that has problems and is therefore no mapping.
struct FaultyFile {
  std::string file;
  std::string vm;  ///< its `vm:`; empty if it could not be read
};

/// The contents of the configuration directory, without mappings that have problems.
struct Configuration {
  std::vector<Mapping> mappings;          ///< by file name
  std::vector<FaultyFile> faulty;         ///< the others
  HostPolicy host;                        ///< host.yaml its settings of PFs
  std::vector<SoftRocePolicy> softRoce;   ///< the SoftRoCE links in host.yaml
  std::vector<AcceptedFinding> accepted;  ///< the findings of doctor that host.yaml accepts
  std::vector<Problem> problems;          ///< every mistake of every file, by file and line
};

/// Reads `vms/*.yaml` and `host.yaml` in the directory. A missing directory counts as empty. Files
/// that are not owned by root (or by the caller, for an ordinary user), writable by others,
/// symbolic links, not regular files or larger than 1 MiB are reported as problems.
Configuration loadConfiguration(const std::filesystem::path& directory);

/// One file outside of the configuration directory.
struct CheckedFile {
  bool isHostPolicy = false;      ///< a host.yaml, by its keys or by its name
  std::vector<Mapping> mappings;  ///< empty if the file has problems, or is a host.yaml
  std::vector<Problem> problems;
};

/// Reads one file, a mapping or a host.yaml, for `vfpass check FILE`.
CheckedFile loadFile(const std::filesystem::path& file);

/// Conflicts between mappings: two with the same VM, MAC, GUID, VF (same PF selector and index) or
/// GPU. Each problem names both places.
std::vector<Problem> crossCheck(const std::vector<Mapping>& mappings);

/// The same between entries of one mapping, and interface names that the guest would have twice.
std::vector<Problem> collisionsWithin(const Mapping& mapping);

/// The mapping whose `vm:` is this domain's name or its UUID (in upper or lower case, with or
/// without dashes); nullptr if there is none. File names do not matter. Throws Error
/// (ExitCode::badInput) with both places if two match. The pointer is valid as long as the
/// configuration.
const Mapping* findMapping(const Configuration& configuration, const std::string& name,
                           const std::string& uuidText);

/// The file with problems that is the mapping of this domain: by its `vm:` or, where that could not
/// be read, by the file's name. nullptr if none has mistakes; valid as long as the configuration.
const FaultyFile* findFaulty(const Configuration& configuration, const std::string& name,
                             const std::string& uuidText);

/// The JSON schemas that the files are validated against (`vfpass check --schema` prints the
/// first).
const std::string& mappingSchema();
const std::string& hostSchema();

/// A mapping that vfpass proposes.
struct NewMapping {
  std::string vm;    ///< as in the text
  std::string name;  ///< of the domain; equal to `vm` unless that is a UUID and libvirt was asked
  std::string uuid;  ///< of the domain; may be empty
  std::string text;
};

/// Creates `vms/NAME.yaml` in the configuration directory, and returns its path. Writes the whole
/// file durably, or nothing. Throws Error (bad input) if any file there is a mapping of the VM, if
/// the text has mistakes or conflicts with another mapping, or if the directory cannot be trusted;
/// Error (failed) with a remedy for missing rights and a full disk.
std::filesystem::path writeNewMapping(const std::filesystem::path& directory,
                                      const NewMapping& mapping);

/// Creates `host.yaml` in the configuration directory, in the same way. Throws Error (bad input) if
/// there is one, or if the text has mistakes.
std::filesystem::path writeNewHostPolicy(const std::filesystem::path& directory,
                                         const std::string& text);

/// The problems that this text would have as the mapping `file`, beside the other mappings of the
/// configuration: its mistakes, and conflicts with them.
std::vector<Problem> problemsOfMapping(const std::filesystem::path& file, const std::string& text,
                                       Configuration configuration);

/// The mapping that this text would be; nullopt if it has mistakes. Its places have no file.
std::optional<Mapping> readProposed(const std::string& text);

}  // namespace vfpass::config
