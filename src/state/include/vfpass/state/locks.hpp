#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "vfpass/pci_address.hpp"
#include "vfpass/plan.hpp"

namespace vfpass::state {

/// An flock on a file of the run directory, released by the destructor or when the process ends.
/// Creates missing directories (0700) and files (0600). The holder may remove the file: a waiter
/// notices this and starts over with a new file.
class FileLock {
 public:
  /// Waits in the kernel, without polling, until the lock is free. Throws Error after `timeout`,
  /// naming the lock and the PID of the holder if the file contains it.
  static FileLock acquire(const std::filesystem::path& file, std::chrono::milliseconds timeout);
  /// nullopt if the lock is held.
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

/// A lock that FileLock::acquire() waits for.
struct LockWait {
  std::filesystem::path file;
  std::string holder;  ///< such as `process 123 (vfpass detach train0)`
};

/// During its lifetime, `observe` is called when this process begins to wait for a lock, with the
/// lock, and when the wait is over, with nullptr. One within the lifetime of another one replaces
/// it for that time. Create and destroy them in one thread, while no other one waits for a lock.
class LockWaitObserver {
 public:
  using Observe = std::function<void(const LockWait*)>;

  explicit LockWaitObserver(Observe observe);
  LockWaitObserver(const LockWaitObserver&) = delete;
  LockWaitObserver& operator=(const LockWaitObserver&) = delete;
  ~LockWaitObserver();

  /// For FileLock::acquire(): calls the observer that there is.
  static void tell(const LockWait* wait);

 private:
  Observe observe_;
  LockWaitObserver* outer_;
};

/// What the lock of this file serialises, from its name: `PF 0000:3b:00.0`, `domain UUID`,
/// `operation 12`, `the SoftRoCE links`; otherwise the file.
std::string lockSubject(const std::filesystem::path& file);

/// Takes one lock per PF, in address order, so that two plans never deadlock.
std::vector<FileLock> lockPfs(const std::filesystem::path& runDirectory,
                              const std::vector<PciAddress>& pfs,
                              std::chrono::milliseconds timeout);

/// The lock file of the host's SoftRoCE links.
std::filesystem::path softRoceLockFile(const std::filesystem::path& runDirectory);

/// Takes all locks for running or recovering a plan: those of its PFs, then that of the SoftRoCE
/// links.
std::vector<FileLock> lockPlan(const std::filesystem::path& runDirectory, const Plan& plan,
                               std::chrono::milliseconds timeout);

/// The lock that attach, detach, gc and recovery of one domain hold from their first look at it.
std::filesystem::path domainLockFile(const std::filesystem::path& runDirectory, const Uuid& domain);

/// The lock that a writer holds during its operation. A process that can take it knows that the
/// writer is dead, even if its PID is in use again.
std::filesystem::path writerLockFile(const std::filesystem::path& runDirectory,
                                     std::int64_t operation);

}  // namespace vfpass::state
