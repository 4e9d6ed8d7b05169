#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "root.hpp"

namespace vfpass::host {

/// One block device by the two names that the mount table uses.
struct MountSource {
  std::string number;  ///< major:minor
  std::string file;    ///< /dev/sda1
};

/// What is mounted in our mount namespace and what is swap, read once. At most 1 MiB of each table.
class MountTable {
 public:
  explicit MountTable(const Root& root);

  /// Mount points of this device, as the kernel writes them (a space is \040).
  [[nodiscard]] std::vector<std::string> mountsOf(const MountSource& source) const;
  [[nodiscard]] bool isSwap(std::string_view file) const;

 private:
  std::vector<std::string> mounts_;
  std::vector<std::string> swaps_;
};

}  // namespace vfpass::host
