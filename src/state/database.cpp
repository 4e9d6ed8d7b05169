#include "vfpass/state/database.hpp"

#include <SQLiteCpp/Statement.h>

#include "database_tables.hpp"
#include "sqlite_connection.hpp"
#include "state_folder.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/mac_guid_uuid.hpp"

namespace vfpass::state {
namespace {

/// Compares each index with its table, too; quick_check does not.
void requireIntegrity(SQLite::Database& database) {
  const std::string problem = database.execAndGet("PRAGMA integrity_check(1)").getString();
  if (problem != "ok") {
    throw CorruptDatabase("state database is damaged: " + printable(problem));
  }
}

/// No command needs these records of a newer version.
template <typename Read>
void requireParsing(Read read) {
  try {
    read();
  } catch (const CorruptDatabase&) {
    throw;
  } catch (const Error&) {
    return;
  }
}

void requireEndedLeases(SQLite::Database& database) {
  if (!hasFormat(database, 3)) {
    return;
  }
  SQLite::Statement query(database, "SELECT domain, vf_name, generation FROM ended_leases");
  while (query.executeStep()) {
    if (!parseUuid(query.getColumn(0).getString()) || query.getColumn(2).getInt64() < 0) {
      throw CorruptDatabase("state database: damaged record: no valid end of a lease");
    }
  }
}

}  // namespace

CorruptDatabase::CorruptDatabase(const std::string& message)
    : Error(
          message,
          "run `vfpass recover`; it moves the file aside and rebuilds the leases from the host and "
          "the domains' XML") {}

struct Database::Implementation {
  Location location;
  std::chrono::milliseconds busyTimeout;
  std::unique_ptr<SQLite::Database> connection;  ///< null: read-only, reopened by every call
  bool inOneTransaction = false;                 ///< during together()
  std::string bootId;                            ///< empty: leases are returned as recorded

  [[nodiscard]] std::vector<Lease> asOfThisBoot(std::vector<Lease> leases) const {
    for (auto& lease : leases) {
      if (!bootId.empty() && lease.bootId != bootId) {
        lease.state = LeaseState::reserved;
        lease.activatedPartition = false;
      }
    }
    return leases;
  }

  /// An empty database yields a default `Result`.
  template <typename Result, typename Query>
  [[nodiscard]] Result read(Query query) const {
    Result result{};
    const Work work = [&](SQLite::Database& database) { result = query(database); };
    if (inOneTransaction) {
      work(*connection);
    } else if (connection) {
      inTransaction(*connection, location, busyTimeout, false, work);
    } else {
      withReadOnlyDatabase(location, busyTimeout, work);
    }
    return result;
  }

  template <typename Result, typename Change>
  Result write(Change change) {
    if (!connection) {
      throw Error("state database: opened read-only", {});
    }
    if (inOneTransaction) {
      return change(*connection);
    }
    Result result{};
    inTransaction(*connection, location, busyTimeout, true,
                  [&](SQLite::Database& database) { result = change(database); });
    replaceReadersCopy(*connection, location, busyTimeout);
    return result;
  }

  void update(const Work& work) {
    write<bool>([&](SQLite::Database& database) {
      work(database);
      return true;
    });
  }
};

Database::Database(const std::filesystem::path& stateDirectory, Open open,
                   std::chrono::milliseconds busyTimeout)
    : implementation_(std::make_unique<Implementation>()) {
  implementation_->busyTimeout = busyTimeout;
  if (open == Open::readOnly) {
    implementation_->location = databaseIn(stateDirectory);
    return;
  }
  implementation_->location = databaseIn(makePrivateFolder(stateDirectory));
  implementation_->connection = openForWriting(implementation_->location, busyTimeout);
  // A process that was killed after its commit has not replaced it.
  replaceReadersCopy(*implementation_->connection, implementation_->location, busyTimeout);
}

Database::~Database() = default;

void Database::setCurrentBoot(std::string bootId) { implementation_->bootId = std::move(bootId); }

void Database::requireUndamaged() const {
  static_cast<void>(implementation_->read<bool>([](SQLite::Database& database) {
    state::requireUndamaged(database);
    return true;
  }));
}

std::vector<Lease> Database::leases() const {
  return implementation_->asOfThisBoot(implementation_->read<std::vector<Lease>>(readLeases));
}

std::vector<Lease> Database::leasesOf(const Uuid& domain) const {
  return implementation_->asOfThisBoot(implementation_->read<std::vector<Lease>>(
      [&](SQLite::Database& database) { return readLeasesOf(database, domain); }));
}

std::vector<Lease> Database::leasesOn(const std::vector<PciAddress>& pfs) const {
  return implementation_->asOfThisBoot(implementation_->read<std::vector<Lease>>(
      [&](SQLite::Database& database) { return readLeasesOn(database, pfs); }));
}

void Database::recordLease(const Lease& lease) {
  implementation_->update([&](SQLite::Database& database) { writeLease(database, lease); });
}

std::string Database::adoptLease(const Lease& lease) {
  return implementation_->write<std::string>([&](SQLite::Database& database) {
    std::string fault = state::adoptionFault(database, lease);
    if (fault.empty()) {
      writeLease(database, lease);
    }
    return fault;
  });
}

std::string Database::adoptionFault(const Lease& lease) const {
  return implementation_->read<std::string>(
      [&](SQLite::Database& database) { return state::adoptionFault(database, lease); });
}

void Database::forgetEnded(const std::set<Uuid>& domains, std::size_t kept) {
  implementation_->update(
      [&](SQLite::Database& database) { deleteTombstones(database, domains, kept); });
}

bool Database::dropLease(const Uuid& domain, const std::string& entry, std::uint64_t generation) {
  return implementation_->write<bool>(
      [&](SQLite::Database& database) { return deleteLease(database, domain, entry, generation); });
}

void Database::endLeases(const std::vector<EndedLease>& leases) {
  implementation_->update([&](SQLite::Database& database) {
    for (const EndedLease& ended : leases) {
      endLease(database, ended);
    }
  });
}

std::vector<StoredHandOver> Database::handOvers() const {
  return implementation_->read<std::vector<StoredHandOver>>(readHandOvers);
}

std::optional<DeviceUse> Database::deviceUse(const PciAddress& device) const {
  return implementation_->read<std::optional<DeviceUse>>(
      [&](SQLite::Database& database) { return readUse(database, device); });
}

void Database::recordUse(const DeviceUse& use) {
  implementation_->update([&](SQLite::Database& database) { writeUse(database, use); });
}

std::vector<QuarantinedDevice> Database::quarantined() const {
  return implementation_->read<std::vector<QuarantinedDevice>>(readQuarantine);
}

void Database::quarantine(const QuarantinedDevice& device) {
  implementation_->update([&](SQLite::Database& database) { writeQuarantine(database, device); });
}

bool Database::endQuarantine(const PciAddress& device) {
  return implementation_->write<bool>(
      [&](SQLite::Database& database) { return deleteQuarantine(database, device); });
}

bool Database::setLeaseState(const Uuid& domain, const std::string& entry, std::uint64_t generation,
                             LeaseState state, const std::string& bootId) {
  return implementation_->write<bool>([&](SQLite::Database& database) {
    std::optional<Lease> lease = readLease(database, domain, entry, generation);
    if (lease) {
      lease->state = state;
      lease->bootId = bootId;
      writeLease(database, *lease);
    }
    return lease.has_value();
  });
}

std::uint64_t Database::nextGeneration() {
  return implementation_->write<std::uint64_t>(takeGeneration);
}

std::uint64_t Database::lastGeneration() const {
  return implementation_->read<std::uint64_t>(readGeneration);
}

void Database::raiseGeneration(std::uint64_t seen) {
  implementation_->update(
      [&](SQLite::Database& database) { state::raiseGeneration(database, seen); });
}

void Database::together(const std::function<void()>& changes) {
  if (implementation_->inOneTransaction) {
    return changes();
  }
  implementation_->update([&](SQLite::Database&) {
    implementation_->inOneTransaction = true;
    const auto ended = std::unique_ptr<bool, void (*)(bool*)>(&implementation_->inOneTransaction,
                                                              [](bool* flag) { *flag = false; });
    changes();
  });
}

std::int64_t Database::beginOperation(const Plan& plan, const std::string& bootId) {
  return implementation_->write<std::int64_t>(
      [&](SQLite::Database& database) { return insertOperation(database, plan, bootId); });
}

void Database::appendSteps(std::int64_t operation, const std::vector<Step>& steps) {
  implementation_->update(
      [&](SQLite::Database& database) { insertSteps(database, operation, steps); });
}

void Database::markSteps(std::int64_t operation, std::size_t first, std::size_t count,
                         StepStatus status) {
  implementation_->update(
      [&](SQLite::Database& database) { updateSteps(database, operation, first, count, status); });
}

void Database::replaceAction(std::int64_t operation, std::size_t position, const Action& action) {
  implementation_->update(
      [&](SQLite::Database& database) { updateAction(database, operation, position, action); });
}

void Database::finishOperation(std::int64_t operation) {
  implementation_->update(
      [&](SQLite::Database& database) { deleteOperation(database, operation); });
}

std::vector<Operation> Database::openOperations() const {
  return implementation_->read<std::vector<Operation>>(readOperations);
}

std::vector<Operation> Database::openOperationsOf(const Uuid& domain) const {
  return implementation_->read<std::vector<Operation>>(
      [&](SQLite::Database& database) { return readOperationsOf(database, domain); });
}

std::optional<Operation> Database::openOperation(std::int64_t id) const {
  return implementation_->read<std::optional<Operation>>(
      [id](SQLite::Database& database) { return readOperation(database, id); });
}

std::optional<OperationOwner> Database::ownerOfOperation(std::int64_t id) const {
  return implementation_->read<std::optional<OperationOwner>>(
      [id](SQLite::Database& database) { return readOwner(database, id); });
}

std::vector<SoftRoceRecord> Database::softRoceRecords() const {
  return implementation_->read<std::vector<SoftRoceRecord>>(readSoftRoceRecords);
}

void Database::recordSoftRoce(const SoftRoceRecord& record) {
  implementation_->update(
      [&](SQLite::Database& database) { writeSoftRoceRecord(database, record); });
}

void Database::forgetSoftRoce(const std::string& name) {
  implementation_->update(
      [&](SQLite::Database& database) { deleteSoftRoceRecord(database, name); });
}

void requireUndamaged(SQLite::Database& database) {
  requireIntegrity(database);
  readLeases(database);
  readSoftRoceRecords(database);
  readQuarantine(database);
  readGeneration(database);
  requireEndedLeases(database);
  requireParsing([&] { readHandOvers(database); });
  requireParsing([&] { readUses(database); });
  readOperations(database);
}

}  // namespace vfpass::state
