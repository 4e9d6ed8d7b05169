#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "vfpass/pci_address.hpp"
#include "vfpass/plan.hpp"

namespace vfpass::state {

/// An flock on a file of the run folder, released by the destructor or by the end of the process.
/// Folder (0700) and file (0600) are made where they are missing. The holder may remove the file:
/// who waited for it notices and starts over with a new one.
class FileLock {
 public:
  /// Waits until the lock is free, at most `patience`; throws Error (naming lock and holder's pid,
  /// where the file tells it) when it is not. Waits in the kernel; does not poll.
  static FileLock acquire(const std::filesystem::path& file, std::chrono::milliseconds patience);
  /// nullopt when somebody holds it.
  static std::optional<FileLock> tryAcquire(const std::filesystem::path& file);

  FileLock(FileLock&& other) noexcept;
  FileLock& operator=(FileLock&& other) noexcept;
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;
  ~FileLock();

 private:
  explicit FileLock(int descriptor);
  int descriptor_ = -1;
};

/// One lock per PF. Taken in address order, so that two plans never wait in a circle.
std::vector<FileLock> lockPfs(const std::filesystem::path& runDirectory,
                              const std::vector<PciAddress>& pfs,
                              std::chrono::milliseconds patience);

/// The lock of the host's SoftRoCE links.
std::filesystem::path softRoceLockFile(const std::filesystem::path& runDirectory);

/// All that running or recovering a plan needs: its PFs', then that of the SoftRoCE links.
std::vector<FileLock> lockPlan(const std::filesystem::path& runDirectory, const Plan& plan,
                               std::chrono::milliseconds patience);

/// The lock that a writer holds while its operation is under way: who can take it knows that the
/// writer is dead, whatever its pid says.
std::filesystem::path writerLockFile(const std::filesystem::path& runDirectory,
                                     std::int64_t operation);

}  // namespace vfpass::state
