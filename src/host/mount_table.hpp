#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "vfpass/host/root.hpp"

namespace vfpass::host {

/// One block device by the two names that the mount table uses.
struct MountSource {
  std::string number;  ///< major:minor
  std::string file;    ///< /dev/sda1
};

/// What is mounted in our mount namespace and what is swap, read once. At most 8 MiB of each table.
class MountTable {
 public:
  explicit MountTable(const Root& root);

  /// Mount points of this device, as the kernel writes them (a space is \040).
  [[nodiscard]] std::vector<std::string> mountsOf(const MountSource& source) const;
  [[nodiscard]] bool isSwap(std::string_view file) const;
  /// False when a table is longer than what is read of it: a device may be in use all the same.
  [[nodiscard]] bool isComplete() const { return complete_; }

 private:
  [[nodiscard]] std::vector<std::string> readLines(const Root& root, const std::string& path);

  bool complete_ = true;
  std::vector<std::string> mounts_;
  std::vector<std::string> swaps_;
};

}  // namespace vfpass::host
