#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "vfpass/config/configuration.hpp"

namespace vfpass::config {

/// A mapping that vfpass proposes.
struct NewMapping {
  std::string vm;    ///< as in the text
  std::string name;  ///< of the domain; equal to `vm` if that is no UUID, or libvirt was not asked
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
