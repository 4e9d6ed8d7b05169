#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "vfpass/error.hpp"
#include "vfpass/lease.hpp"
#include "vfpass/plan.hpp"
#include "vfpass/soft_roce.hpp"

namespace vfpass::state {

/// The file is no database or is damaged, so that a caller may set it aside and rebuild it.
class CorruptDatabase : public Error {
 public:
  using Error::Error;
};

/// How far a journaled step has come. A step found `started` may or may not have had its effect.
enum class StepStatus { planned, started, done, undone };

struct JournaledStep {
  Step step;
  StepStatus status = StepStatus::planned;
};

/// A plan that was begun and not finished.
struct Operation {
  std::int64_t id = 0;
  PlanKind kind = PlanKind::attach;
  Uuid domain;
  std::string domainName;
  std::string bootId;
  std::vector<JournaledStep> steps;
};

/// Leases and journal in SQLite (WAL, synchronous FULL), file `vfpass.db` in the state folder.
/// Every call is one transaction of its own and returns with none open, so that nothing of ours is
/// held across a libvirt call. All calls throw Error; a full disk, a read-only folder, a locked and
/// a corrupt database each have their own message and remedy.
class Database {
 public:
  enum class Open {
    createIfMissing,  ///< makes folder (0700) and file (0600)
    readOnly,         ///< a missing file reads as empty; never writes
  };

  /// `busyTimeout`: how long another writer's transaction is waited for.
  Database(const std::filesystem::path& stateDirectory, Open open,
           std::chrono::milliseconds busyTimeout);
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;
  ~Database();

  /// From now on a lease that is starting or running since another boot reads as reserved: its
  /// guest went down with that boot, and no release came.
  void presentBoot(std::string bootId);

  [[nodiscard]] std::vector<Lease> leases() const;  ///< by domain, then name
  [[nodiscard]] std::vector<Lease> leasesOf(const Uuid& domain) const;

  /// Inserts or replaces (key: domain, vfName). Throws ExitCode::refused when another domain, or
  /// another entry of the same one, holds a lease on the same (pf, vfIndex).
  void recordLease(const Lease& lease);
  /// False when the lease is gone or has another generation; nothing is deleted then. In any case
  /// this generation of the entry, and every older one, has ended: adoptLease() refuses it.
  bool dropLease(const Uuid& domain, const std::string& vfName, std::uint64_t generation);
  /// Records a lease that this database does not know (it was lost) and raises the generation to
  /// its own. Returns why not, and changes nothing then: see adoptionFault(). Empty: recorded.
  std::string adoptLease(const Lease& lease);
  /// Why adoptLease() would refuse a lease whose entry is not known: this generation has ended, or
  /// another lease holds the device. Empty: it would not.
  [[nodiscard]] std::string adoptionFault(const Lease& lease) const;
  /// Sets state and boot of a lease that still has this generation; false otherwise.
  bool setLeaseState(const Uuid& domain, const std::string& vfName, std::uint64_t generation,
                     LeaseState state, const std::string& bootId);
  /// A number never handed out before by this database, growing.
  std::uint64_t nextGeneration();
  /// The highest generation handed out or recorded so far; 0 in a new database. recordLease() of a
  /// higher one raises it, so that a rebuilt database never hands out a generation twice.
  [[nodiscard]] std::uint64_t lastGeneration() const;
  /// Raises it to one that was seen in authentic metadata, for the same purpose.
  void raiseGeneration(std::uint64_t seen);

  /// Writes the whole plan down before its first step runs.
  std::int64_t beginOperation(const Plan& plan, const std::string& bootId);
  /// Marks steps [first, first + count) in one transaction.
  void markSteps(std::int64_t operation, std::size_t first, std::size_t count, StepStatus status);
  /// Deletes the operation: it is done or undone completely.
  void finishOperation(std::int64_t operation);
  /// Operations not finished, oldest first.
  [[nodiscard]] std::vector<Operation> openOperations() const;

  /// The SoftRoCE links that vfpass made, by name, also those of earlier boots.
  [[nodiscard]] std::vector<SoftRoceRecord> softRoceRecords() const;
  /// Inserts or replaces (key: name).
  void recordSoftRoce(const SoftRoceRecord& record);
  /// Nothing to do when there is none of that name.
  void forgetSoftRoce(const std::string& name);

 private:
  struct Implementation;
  std::unique_ptr<Implementation> implementation_;
};

/// Moves a database that cannot be read aside (`vfpass.db.corrupt-<n>`); returns the new name.
/// Throws ExitCode::refused when it can be read (another process has rebuilt it meanwhile).
std::filesystem::path setAsideCorruptDatabase(const std::filesystem::path& stateDirectory);

}  // namespace vfpass::state
