#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace vfpass {

/// What this host seals the metadata of its domains with. Without a secret nothing is sealed and no
/// seal is valid.
struct SealKey {
  std::vector<std::uint8_t> secret;  ///< 32 random bytes, or none
  std::string hostId;                ///< /etc/machine-id: the seal of another host is not ours
};

}  // namespace vfpass
