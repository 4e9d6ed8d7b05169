#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "vfpass/error.hpp"
#include "vfpass/hand_over.hpp"
#include "vfpass/lease.hpp"
#include "vfpass/plan.hpp"
#include "vfpass/soft_roce.hpp"

namespace vfpass::state {

/// The file is not a database or is damaged; the caller may set it aside and rebuild it.
class CorruptDatabase : public Error {
 public:
  /// The remedy is the same for every kind of damage.
  explicit CorruptDatabase(const std::string& message);
};

/// The record of an open operation has a word that this version does not know: a newer one wrote
/// it, or it is damaged. The remedy abandons the operation.
class UnknownOperation : public Error {
 public:
  using Error::Error;
};

/// Progress of a journaled step. A step that is `started` after a crash may or may not have taken
/// effect. An operation with a step that is `undoing` or `undone` is being rolled back, and only
/// goes on in this direction.
enum class StepStatus { planned, started, done, undoing, undone };

struct JournaledStep {
  Step step;
  StepStatus status = StepStatus::planned;
};

/// A plan that was begun but has not finished.
struct Operation {
  std::int64_t id = 0;
  PlanKind kind = PlanKind::attach;
  Uuid domain;
  std::string domainName;
  std::string bootId;
  std::vector<JournaledStep> steps;
};

/// The domain of an operation.
struct OperationOwner {
  Uuid domain;
  std::string domainName;
};

/// The end of a lease whose device leaves its domain.
struct EndedLease {
  HandOverRecord record;
  std::string seal;  ///< of handOverToJson(record); empty: not sealed
};

/// A record of the end of a lease as it is stored.
struct StoredHandOver {
  HandOverRecord record;
  std::string text;  ///< sealed
  std::string seal;  ///< empty: not sealed
};

/// Leases and journal in SQLite (WAL, synchronous FULL), file `vfpass.db` in the state directory.
/// If the group of the directory may enter it, every change also replaces a copy that it may read.
/// Every call is one transaction and returns with none open, so that no transaction spans a libvirt
/// call. All calls throw Error; a full disk, a read-only directory, a locked and a corrupt database
/// each have their own message and remedy.
class Database {
 public:
  enum class Open {
    createIfMissing,  ///< creates directory (0700) and file (0600)
    readOnly,         ///< treats a missing file as empty; never writes
  };

  /// `busyTimeout`: how long to wait for the transaction of another writer.
  Database(const std::filesystem::path& stateDirectory, Open open,
           std::chrono::milliseconds busyTimeout);
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;
  ~Database();

  /// Sets the current boot. From now on, a lease that is starting or running in another boot reads
  /// as reserved: that boot ended without a release.
  void setCurrentBoot(std::string bootId);

  /// Throws CorruptDatabase unless every table is intact and each of its records can be read:
  /// damage can be anywhere, and opening reads only the first page. Throws UnknownOperation only if
  /// nothing else is wrong.
  void requireUndamaged() const;

  [[nodiscard]] std::vector<Lease> leases() const;  ///< by domain, then name
  [[nodiscard]] std::vector<Lease> leasesOf(const Uuid& domain) const;
  /// Of these PFs and PCI functions (Lease::pf).
  [[nodiscard]] std::vector<Lease> leasesOn(const std::vector<PciAddress>& pfs) const;

  /// Inserts or replaces (key: domain, entry). Throws ExitCode::refused if another domain, or
  /// another entry of the same domain, holds a lease on the same (pf, vfIndex).
  void recordLease(const Lease& lease);
  /// Returns false and deletes nothing if the lease is missing or has another generation. Either
  /// way, this and all older generations of the entry have ended: adoptLease() refuses them.
  bool dropLease(const Uuid& domain, const std::string& entry, std::uint64_t generation);
  /// Records a lease that this database does not know (because the database was lost) and raises
  /// the generation to that of the lease. Returns an empty string, or the reason why nothing was
  /// recorded: see adoptionFault().
  std::string adoptLease(const Lease& lease);
  /// Why adoptLease() would refuse an unknown lease: its generation has ended, or another lease
  /// holds the device. Empty if it would accept it.
  [[nodiscard]] std::string adoptionFault(const Lease& lease) const;
  /// Forgets which leases have ended, except those of `domains` and the newest `kept` of others.
  void forgetEnded(const std::set<Uuid>& domains, std::size_t kept);
  /// dropLease() of each, with its record; the use of its device ends, and the device goes into
  /// quarantine if the record says so. All of that or nothing. A lease that has ended before
  /// gets no other record.
  void endLeases(const std::vector<EndedLease>& leases);
  /// The records of ended leases, newest first.
  [[nodiscard]] std::vector<StoredHandOver> handOvers() const;
  /// What is known of a device since a domain leased it. Nothing if its record is damaged or one of
  /// a newer version, which must not keep a VM from starting or stopping.
  [[nodiscard]] std::optional<DeviceUse> deviceUse(const PciAddress& device) const;
  /// Inserts or replaces (key: device).
  void recordUse(const DeviceUse& use);
  /// The devices in quarantine, by address.
  [[nodiscard]] std::vector<QuarantinedDevice> quarantined() const;
  /// Does nothing if the device is in quarantine: the first reason stays.
  void quarantine(const QuarantinedDevice& device);
  /// Returns false if the device is not in quarantine.
  bool endQuarantine(const PciAddress& device);
  /// Sets state and boot of a lease if it still has this generation; returns false otherwise.
  bool setLeaseState(const Uuid& domain, const std::string& entry, std::uint64_t generation,
                     LeaseState state, const std::string& bootId);
  /// Returns a new, unique number, higher than all before.
  std::uint64_t nextGeneration();
  /// The highest generation issued or recorded so far; 0 in a new database. recordLease() of a
  /// higher one raises it, so that a rebuilt database never issues a generation twice.
  [[nodiscard]] std::uint64_t lastGeneration() const;
  /// Raises it to a generation found in authentic metadata, for the same purpose.
  void raiseGeneration(std::uint64_t seen);

  /// Runs `changes`, whose changes of this database are committed together, or not at all if it
  /// throws. Within another together(), they are part of that one.
  void together(const std::function<void()>& changes);

  /// Journals the whole plan before its first step runs.
  std::int64_t beginOperation(const Plan& plan, const std::string& bootId);
  /// Adds steps at the end of an open operation, before they run.
  void appendSteps(std::int64_t operation, const std::vector<Step>& steps);
  /// Marks steps [first, first + count) in one transaction.
  void markSteps(std::int64_t operation, std::size_t first, std::size_t count, StepStatus status);
  /// Replaces what a step of an open operation has done or is to do; its inverses and its status
  /// stay.
  void replaceAction(std::int64_t operation, std::size_t position, const Action& action);
  /// Deletes the operation: it has been completed or fully rolled back.
  void finishOperation(std::int64_t operation);
  /// Unfinished operations, oldest first. These three throw UnknownOperation.
  [[nodiscard]] std::vector<Operation> openOperations() const;
  [[nodiscard]] std::vector<Operation> openOperationsOf(const Uuid& domain) const;
  /// nullopt if it is not open (any more).
  [[nodiscard]] std::optional<Operation> openOperation(std::int64_t id) const;
  /// The same, also of an operation that this version does not understand.
  [[nodiscard]] std::optional<OperationOwner> ownerOfOperation(std::int64_t id) const;

  /// The SoftRoCE links that vfpass created, by name, including those of earlier boots.
  [[nodiscard]] std::vector<SoftRoceRecord> softRoceRecords() const;
  /// Inserts or replaces (key: name).
  void recordSoftRoce(const SoftRoceRecord& record);
  /// Does nothing if there is no such record.
  void forgetSoftRoce(const std::string& name);

 private:
  struct Implementation;
  std::unique_ptr<Implementation> implementation_;
};

/// A damaged database that another one has replaced.
struct SetAside {
  std::filesystem::path file;  ///< `vfpass.db.corrupt-<n>`
  bool keptQuarantine = true;  ///< false: not all devices in quarantine could be read
  bool keptLeases = true;  ///< false: a lease or the journal could not be read, and all are lost
};

/// Renames a database that Database::requireUndamaged() refuses, and replaces it by one with the
/// devices in quarantine, the ended leases and the highest number of an operation that can still be
/// read in it. It has the leases and the journal, too, if all of both can be read, and the SoftRoCE
/// links if all of them can. Changes by a process that has the damaged one open throw Error from
/// then on. If this process is killed meanwhile, the next one that opens the database for writing
/// completes that. Throws ExitCode::refused if it is not damaged (another process has rebuilt it
/// meanwhile).
SetAside setAsideCorruptDatabase(const std::filesystem::path& stateDirectory);

}  // namespace vfpass::state
