#pragma once

#include <filesystem>

#include "vfpass/seal_key.hpp"

namespace vfpass::state {

/// Where a process finds the two parts of the key.
struct SealKeyPlaces {
  std::filesystem::path configDirectory = "/etc/vfpass";  ///< `seal.key`, 64 hexadecimal digits
  std::filesystem::path machineId = "/etc/machine-id";
};

/// The host's key. A missing file reads as a key without a secret. Throws Error (bad input) for a
/// file that others can read or write, that root (or the caller) does not own, that is a link or no
/// key, and for a folder in which others can replace it.
SealKey readSealKey(const SealKeyPlaces& places);

/// The same; makes folder and file (mode 0600) durably where they are missing. Of two processes
/// that do so at once both get the same key.
SealKey makeSealKey(const SealKeyPlaces& places);

}  // namespace vfpass::state
