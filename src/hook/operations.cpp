#include "operations.hpp"

#include <syslog.h>

#include <algorithm>
#include <set>

#include "vfpass/apply/adopt_leases.hpp"
#include "vfpass/apply/recover.hpp"
#include "vfpass/apply/run.hpp"
#include "vfpass/apply/start_locks.hpp"
#include "vfpass/base/shell.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/host/system_kernel.hpp"
#include "vfpass/plan/hook.hpp"
#include "vfpass/plan/metadata_check.hpp"
#include "vfpass/state/locks.hpp"
#include "vfpass/state/started_marks.hpp"

namespace vfpass::hook {
namespace {

using std::chrono::milliseconds;

// What is left of a call's deadline for its own work once it has the locks. Another call that holds
// them needs no longer either, so that waiting for the rest of the deadline covers it.
constexpr milliseconds workAllowance{20000};
constexpr milliseconds databasePatience{3000};
// For another command to finish with the XML of the domain that starts. It may be waiting for this
// very start: libvirt holds the domain's lock while the hook runs.
constexpr milliseconds operationPatience{10000};

host::Deadlines kernelDeadlines(const Places& places) {
  host::Deadlines deadlines;
  deadlines.bind = milliseconds{8000};
  deadlines.createVfs = milliseconds{12000};
  deadlines.netlink = milliseconds{3000};
  deadlines.end = places.deadline;
  return deadlines;
}

milliseconds untilDeadline(const Places& places) {
  return std::chrono::duration_cast<milliseconds>(places.deadline -
                                                  std::chrono::steady_clock::now());
}

// The hook changes no XML: it seals nothing.
const SealKey noKey;

struct Workplace {
  host::SystemKernel kernel;
  state::Database database;
  apply::Tools tools;

  explicit Workplace(const Places& places)
      : kernel("/", kernelDeadlines(places)),
        database(places.stateDirectory, state::Database::Open::createIfMissing,
                 std::min(databasePatience, untilDeadline(places))),
        tools{kernel, database, nullptr, domain::builtInTemplates(), noKey, places.runDirectory} {
    tools.lockPatience = std::max(untilDeadline(places) - workAllowance, milliseconds{1000});
    tools.deadline = places.deadline;
    database.presentBoot(kernel.bootId());
  }
};

std::vector<PciAddress> pfsOf(const std::vector<Lease>& leases) {
  std::set<PciAddress> pfs;
  for (const auto& lease : leases) {
    pfs.insert(lease.pf);
  }
  return {pfs.begin(), pfs.end()};
}

void readDevice(host::SystemKernel& kernel, const Lease& lease, Inventory& inventory) {
  if (lease.kind == LeaseKind::pciFunction) {
    if (auto function = kernel.readFunction(lease.vf)) {
      inventory.functions.push_back(std::move(*function));
    }
  } else if (findPf(inventory, lease.pf) == nullptr) {
    inventory.pfs.push_back(kernel.readPf(lease.pf));
  }
}

// Only the PFs and functions that matter are read: a host can have many.
Inventory readDevices(host::SystemKernel& kernel, const std::vector<Lease>& leases) {
  Inventory inventory;
  for (const auto& lease : leases) {
    try {
      readDevice(kernel, lease, inventory);
    } catch (const Error& error) {
      syslog(LOG_WARNING, "%s",
             printableLine(error.what()).c_str());  // the plan says what it lacks
    }
  }
  std::vector<PciAddress> devices;
  std::transform(leases.begin(), leases.end(), std::back_inserter(devices),
                 [](const Lease& lease) { return lease.vf; });
  inventory.holders = kernel.findHolders(devices);
  inventory.unsafeInterrupts = kernel.unsafeInterrupts();
  inventory.iommuPresent = kernel.iommuPresent();
  return inventory;
}

void checkClaims(const domain::ParsedDomain& parsed) {
  const auto differences = domain::claimDifferences(parsed, parsed.leases);
  if (!differences.empty()) {
    throw Error("the XML's devices are not what vfpass attached: " + join(differences, "; "),
                "run `vfpass attach " + shellArgument(parsed.name) + "`");
  }
}

// Metadata are used only where the database has no lease of this domain, which was lost then.
void rebuildLostLeases(const domain::ParsedDomain& parsed, const Places& places, Workplace& place,
                       const std::vector<Uuid>& active) {
  if (!place.database.leasesOf(parsed.uuid).empty()) {
    return;
  }
  const auto adoption = apply::adoptLeases(place.database, place.kernel,
                                           state::readSealKey(places.sealKey), {parsed}, active);
  for (const auto& line : adoption.adopted) {
    syslog(LOG_NOTICE, "%s", line.c_str());
  }
  if (!adoption.refused.empty()) {
    const std::string name = printable(parsed.name);
    throw Error("domain " + name + " has no lease in the state database, and " +
                    adoption.refused.front().reason,
                "run `vfpass attach " + printable(shellQuoted(parsed.name)) + "`",
                ExitCode::refused);
  }
}

// What is applied is what attach decided, so the XML's metadata must say the same.
void requireOwnMetadata(const domain::ParsedDomain& parsed, const Places& places,
                        Workplace& place) {
  rebuildLostLeases(parsed, places, place, {});
  plan::throwObjections("domain " + printable(parsed.name) + " cannot start",
                        plan::checkMetadata(parsed.uuid, parsed.name, parsed.leases,
                                            place.database.leasesOf(parsed.uuid)));
}

std::vector<Lease> leasesOf(const state::Database& database, const Uuid& domain) {
  return database.leasesOf(domain);
}

void logWarnings(const std::vector<std::string>& warnings) {
  for (const auto& warning : warnings) {
    syslog(LOG_WARNING, "%s", printableLine(warning).c_str());
  }
}

}  // namespace

void prepare(const domain::ParsedDomain& parsed, const Places& places) {
  if (!parsed.managed) {
    throw Error("the domain has a device that vfpass attached, but no vfpass metadata",
                "run `vfpass attach " + printable(shellQuoted(parsed.name)) + "`");
  }
  if (!parsed.metadataProblem.empty()) {
    throw Error("the vfpass metadata in the domain XML cannot be read: " + parsed.metadataProblem,
                "run `vfpass attach " + printable(shellQuoted(parsed.name)) + "`");
  }
  checkClaims(parsed);
  Workplace place(places);
  const auto recovered = apply::recover(place.tools, parsed.uuid);
  logWarnings(recovered.ended);
  apply::throwUnended(recovered.unended);
  requireOwnMetadata(parsed, places, place);
  const auto pfs = pfsOf(parsed.leases);
  // Compared again under the locks: another command may have changed the leases.
  auto locks = apply::lockForStart(place.tools, parsed.uuid, pfs, operationPatience);
  const auto decision =
      plan::planPrepare(parsed.uuid, parsed.name, parsed.leases, place.database.leases(),
                        readDevices(place.kernel, parsed.leases), place.kernel.bootId());
  plan::throwObjections("domain " + printable(parsed.name) + " cannot start", decision.objections);
  logWarnings(apply::run(decision.plan, place.tools, std::move(locks)));
}

void markRunning(const domain::ParsedDomain& parsed, const Places& places) {
  Workplace place(places);
  const std::string bootId = place.kernel.bootId();
  for (const auto& lease : leasesOf(place.database, parsed.uuid)) {
    if (lease.state == LeaseState::starting) {
      place.database.setLeaseState(lease.domain, lease.vfName, lease.generation,
                                   LeaseState::running, bootId);
    }
  }
  // Verification, if the mapping asks for it, is somebody else's work: libvirt waits for us.
  state::markStarted(places.runDirectory, parsed.uuid);
}

void release(const domain::ParsedDomain& parsed, const Places& places) {
  Workplace place(places);
  const auto leases = leasesOf(place.database, parsed.uuid);
  const bool idle = std::all_of(leases.begin(), leases.end(), [](const Lease& lease) {
    return lease.state == LeaseState::reserved;
  });
  if (idle) {
    return;
  }
  const auto pfs = pfsOf(leases);
  auto locks = state::lockPfs(places.runDirectory, pfs, place.tools.patience());
  // Read again under the lock: a new start of this domain may have taken over.
  const auto plan = plan::planRelease(parsed.uuid, parsed.name, place.database.leases(),
                                      readDevices(place.kernel, leases), place.kernel.bootId());
  logWarnings(apply::run(plan, place.tools, std::move(locks)));
}

void reconnect(const domain::ParsedDomain& parsed, const Places& places) {
  Workplace place(places);
  // Only what the running guest has: an attach for its next start may have added leases since.
  for (const auto& lease : parsed.leases) {
    if (lease.domain == parsed.uuid) {
      place.database.setLeaseState(parsed.uuid, lease.vfName, lease.generation, LeaseState::running,
                                   place.kernel.bootId());
    }
  }
  rebuildLostLeases(parsed, places, place, {parsed.uuid});
}

}  // namespace vfpass::hook
