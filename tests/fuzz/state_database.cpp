// The file of the state database: damaged, of another version, or changed by hand.
// covers: src/state/lease_table.cpp src/state/journal_table.cpp src/state/soft_roce_table.cpp
// src/state/hand_over_table.cpp src/state/schema.cpp -updateAction
#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <set>

#include "fake/temporary_folder.hpp"
#include "fuzz/target.hpp"
#include "vfpass/state/database.hpp"
#include "vfpass/state/record_json.hpp"

namespace vfpass::fuzz {
namespace {

namespace fs = std::filesystem;
using state::Database;

constexpr std::chrono::milliseconds noWait{0};

/// What the database holds; nullopt for a part that was refused.
struct Content {
  std::optional<std::vector<Lease>> leases;
  std::optional<std::vector<state::Operation>> operations;
  std::optional<std::vector<SoftRoceRecord>> softRoce;
  std::optional<std::vector<state::StoredHandOver>> handOvers;
  std::optional<std::vector<QuarantinedDevice>> quarantined;
  std::optional<std::uint64_t> generation;
  bool isDamaged = false;
  bool isForeign = false;  ///< another version wrote a part
};

// As accepted(), and notes why the part was refused.
template <typename Read>
auto readPart(Content& content, Read read) {
  return accepted([&] {
    try {
      return read();
    } catch (const state::CorruptDatabase&) {
      content.isDamaged = true;
      throw;
    } catch (const Error&) {
      content.isForeign = true;
      throw;
    }
  });
}

Content contentOf(const Database& database) {
  Content content;
  content.leases = readPart(content, [&] { return database.leases(); });
  content.operations = readPart(content, [&] { return database.openOperations(); });
  content.softRoce = readPart(content, [&] { return database.softRoceRecords(); });
  content.handOvers = readPart(content, [&] { return database.handOvers(); });
  content.quarantined = readPart(content, [&] { return database.quarantined(); });
  content.generation = readPart(content, [&] { return database.lastGeneration(); });
  return content;
}

void checkOperations(const Database& database, const std::vector<state::Operation>& operations) {
  for (const auto& operation : operations) {
    accepted([&] { return database.openOperationsOf(operation.domain); });
    accepted([&] { return database.ownerOfOperation(operation.id); });
    for (const auto& [step, status] : operation.steps) {
      require(state::actionFromJson(state::actionToJson(step.action)) == step.action,
              "a step that was read can be written");
      require(state::actionsFromJson(state::actionsToJson(step.undo)) == step.undo,
              "an undo list that was read can be written");
    }
  }
}

void checkLeases(const Database& database, const std::vector<Lease>& leases) {
  for (const Lease& lease : leases) {
    require(state::leaseFromJson(state::leaseToJson(lease)) == lease,
            "a lease that was read can be written");
    const auto ofDomain = accepted([&] { return database.leasesOf(lease.domain); });
    require(!ofDomain || ofDomain->size() <= leases.size(), "a domain has some of the leases");
    accepted([&] { return database.adoptionFault(lease); });
  }
}

void checkHandOvers(const std::vector<state::StoredHandOver>& records) {
  for (const auto& stored : records) {
    require(state::handOverFromJson(stored.text) == stored.record,
            "the text of a hand-over is the record, as its seal covers only the text");
    require(state::handOverFromJson(state::handOverToJson(stored.record)) == stored.record,
            "a hand-over that was read can be written");
  }
}

// As a start does, which a damaged use must not refuse.
void checkUses(const Database& database, const Content& content) {
  for (const Lease& lease : content.leases.value_or(std::vector<Lease>{})) {
    const auto use = accepted([&] { return database.deviceUse(lease.device); });
    require(!use || !*use || state::deviceUseFromJson(state::deviceUseToJson(**use)) == **use,
            "the use of a device that was read can be written");
  }
}

template <typename Change>
void attempt(Change change) {
  accepted([&] {
    change();
    return true;
  });
}

void endAndQuarantine(Database& database, const Lease& lease) {
  HandOverRecord record;
  record.domain = lease.domain;
  record.entry = lease.entry;
  record.generation = lease.generation;
  record.device = lease.device;
  record.quarantine = "its reset failed";
  attempt([&] {
    database.recordUse({lease.device, lease.domain, UseBegin{"boot", ErrorCounts{3, 0, 0}}, {}});
  });
  attempt([&] { database.endLeases({{record, "seal"}}); });
  attempt([&] { database.endLeases({{record, "another seal"}}); });
  attempt([&] { database.recordLease(lease); });
}

void endQuarantines(Database& database, const std::vector<QuarantinedDevice>& devices) {
  for (const QuarantinedDevice& device : devices) {
    attempt([&] { database.quarantine({device.device, "another reason", device.since}); });
    accepted([&] { return database.endQuarantine(device.device); });
  }
}

void changeLease(Database& database, const Lease& lease) {
  Lease other = lease;
  other.entry += "-other";
  attempt([&] { database.recordLease(other); });
  attempt([&] {
    database.setLeaseState(lease.domain, lease.entry, lease.generation, LeaseState::running, "b");
  });
  attempt([&] { database.recordLease(lease); });
  endAndQuarantine(database, lease);
  attempt([&] { database.dropLease(lease.domain, lease.entry, lease.generation); });
  attempt([&] { database.adoptLease(lease); });
}

void changeOperation(Database& database, const state::Operation& operation) {
  std::vector<Step> steps;
  for (const auto& journaled : operation.steps) {
    steps.push_back(journaled.step);
  }
  attempt([&] { database.markSteps(operation.id, 0, 1, state::StepStatus::undoing); });
  attempt([&] { database.markSteps(operation.id, 1000, 5, state::StepStatus::done); });
  attempt([&] { database.appendSteps(operation.id, steps); });
  attempt([&] { database.finishOperation(operation.id); });
  accepted([&] { return database.openOperation(operation.id); });
  attempt([&] {
    const auto id = database.beginOperation(
        {operation.kind, operation.domain, operation.domainName, steps, {}}, "boot");
    require(database.openOperation(id).has_value(), "an operation that was begun is open");
  });
}

// Each change either succeeds or is refused.
void change(Database& database, const Content& content) {
  for (const Lease& lease : content.leases.value_or(std::vector<Lease>{})) {
    changeLease(database, lease);
  }
  for (const auto& operation : content.operations.value_or(std::vector<state::Operation>{})) {
    changeOperation(database, operation);
  }
  for (const auto& record : content.softRoce.value_or(std::vector<SoftRoceRecord>{})) {
    attempt([&] { database.recordSoftRoce(record); });
    attempt([&] { database.forgetSoftRoce(record.name); });
  }
  endQuarantines(database, content.quarantined.value_or(std::vector<QuarantinedDevice>{}));
  attempt([&] { database.nextGeneration(); });
  attempt([&] { database.forgetEnded({}, 0); });
}

// Without this, a reader waits until the kernel's clock has moved on: the file could still change.
void makeOld(const fs::path& file) {
  const timespec times[2] = {{1, 0}, {1, 0}};
  ::utimensat(AT_FDCWD, file.c_str(), times, 0);
}

void checkReplacement(const fs::path& folder) {
  try {
    require(fs::exists(state::setAsideCorruptDatabase(folder).file), "a damaged database is kept");
  } catch (const Error& error) {
    // A newer version wrote a part that only this reads: all uses of devices.
    requireSound(error);
    return require(error.code() != ExitCode::refused, "a damaged database is found damaged");
  }
  const Database replacement(folder, Database::Open::createIfMissing, noWait);
  replacement.requireUndamaged();
}

}  // namespace

void runTarget(std::string_view input) {
  const fake::TemporaryFolder temporary(fastFolder());
  const fs::path folder = temporary.path() / "state";
  fs::create_directory(folder);
  fs::permissions(folder, fs::perms::owner_all);
  const fs::path file = folder / "vfpass.db";
  writeFile(file, input);
  fs::permissions(file, fs::perms::owner_read | fs::perms::owner_write);
  makeOld(file);

  const Database reader(folder, Database::Open::readOnly, noWait);
  const Content content = contentOf(reader);
  checkLeases(reader, content.leases.value_or(std::vector<Lease>{}));
  checkHandOvers(content.handOvers.value_or(std::vector<state::StoredHandOver>{}));
  checkUses(reader, content);
  checkOperations(reader, content.operations.value_or(std::vector<state::Operation>{}));
  require(std::distance(fs::directory_iterator(folder), {}) == 1,
          "reading creates no file next to the database");
  if (content.isDamaged && !content.isForeign) {
    return checkReplacement(folder);
  }
  attempt([&] {
    Database writer(folder, Database::Open::createIfMissing, noWait);
    change(writer, contentOf(writer));
  });
  makeOld(file);
  accepted([&] { return state::setAsideCorruptDatabase(folder); });
  require(!accepted([&] { return state::setAsideCorruptDatabase(temporary.path()); }),
          "what does not exist is not set aside");
}

}  // namespace vfpass::fuzz
