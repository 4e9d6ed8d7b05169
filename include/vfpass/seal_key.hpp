#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace vfpass {

/// The key with which this host seals the metadata of its domains. Without a secret nothing is
/// sealed and no seal is valid.
struct SealKey {
  std::vector<std::uint8_t> secret;  ///< 32 random bytes, or none
  std::string hostId;                ///< /etc/machine-id; seals of other hosts are not valid here
};

}  // namespace vfpass
