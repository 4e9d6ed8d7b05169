#pragma once

#include <filesystem>

#include "vfpass/seal_key.hpp"

namespace vfpass::state {

/// Paths of the two parts of the key.
struct SealKeyPlaces {
  std::filesystem::path configDirectory = "/etc/vfpass";  ///< `seal.key`, 64 hexadecimal digits
  std::filesystem::path machineId = "/etc/machine-id";
};

/// Reads the host's key. A missing file reads as a key without a secret. Throws Error (bad input)
/// if the file is accessible to others, not owned by root or the caller, a link or not a key, or if
/// others can replace it in its directory.
SealKey readSealKey(const SealKeyPlaces& places);

/// Like readSealKey(), but durably creates a missing directory and file (mode 0600). Two processes
/// that do so at the same time get the same key.
SealKey makeSealKey(const SealKeyPlaces& places);

}  // namespace vfpass::state
