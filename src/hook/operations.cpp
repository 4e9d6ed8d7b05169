#include "operations.hpp"

#include <syslog.h>

#include <algorithm>
#include <set>

#include "vfpass/apply/recover.hpp"
#include "vfpass/apply/run.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/host/system_kernel.hpp"
#include "vfpass/plan/hook.hpp"
#include "vfpass/state/locks.hpp"
#include "vfpass/state/started_marks.hpp"

namespace vfpass::hook {
namespace {

using std::chrono::milliseconds;

// Together they stay below the 20 s that a start may be held up.
constexpr milliseconds lockPatience{9000};
constexpr milliseconds databasePatience{3000};
constexpr milliseconds shortPatience{1500};
const host::Deadlines kernelDeadlines{milliseconds{8000}, milliseconds{12000}, milliseconds{3000}};

struct Workplace {
  host::SystemKernel kernel;
  state::Database database;
  apply::Tools tools;

  Workplace(const Places& places, milliseconds databaseWait, milliseconds lockWait)
      : kernel("/", kernelDeadlines),
        database(places.stateDirectory, state::Database::Open::createIfMissing, databaseWait),
        tools{kernel,  database, nullptr, domain::builtInTemplates(), places.runDirectory,
              lockWait} {
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
      syslog(LOG_WARNING, "%s", error.what());  // the plan says what it lacks
    }
  }
  inventory.unsafeInterrupts = kernel.unsafeInterrupts();
  inventory.iommuPresent = kernel.iommuPresent();
  return inventory;
}

void checkClaims(const domain::ParsedDomain& parsed) {
  const auto differences = domain::claimDifferences(parsed, parsed.leases);
  if (!differences.empty()) {
    throw Error("the XML's devices are not what vfpass attached: " + join(differences, "; "),
                "run `vfpass attach " + printable(parsed.name) + "`");
  }
}

std::vector<Lease> leasesOf(const state::Database& database, const Uuid& domain) {
  return database.leasesOf(domain);
}

void logWarnings(const std::vector<std::string>& warnings) {
  for (const auto& warning : warnings) {
    syslog(LOG_WARNING, "%s", warning.c_str());
  }
}

}  // namespace

void prepare(const domain::ParsedDomain& parsed, const Places& places) {
  checkClaims(parsed);
  Workplace place(places, databasePatience, lockPatience);
  const auto recovered = apply::recover(place.tools, parsed.uuid);
  logWarnings(recovered.ended);
  apply::throwUnended(recovered.unended);
  const auto pfs = pfsOf(parsed.leases);
  auto locks = state::lockPfs(places.runDirectory, pfs, lockPatience);
  const auto decision =
      plan::planPrepare(parsed.uuid, parsed.name, parsed.leases, place.database.leases(),
                        readDevices(place.kernel, parsed.leases), place.kernel.bootId());
  plan::throwObjections("domain " + printable(parsed.name) + " cannot start", decision.objections);
  logWarnings(apply::run(decision.plan, place.tools, std::move(locks)));
}

void markRunning(const domain::ParsedDomain& parsed, const Places& places) {
  Workplace place(places, databasePatience, shortPatience);
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
  Workplace place(places, shortPatience, shortPatience);
  const auto leases = leasesOf(place.database, parsed.uuid);
  const bool idle = std::all_of(leases.begin(), leases.end(), [](const Lease& lease) {
    return lease.state == LeaseState::reserved;
  });
  if (idle) {
    return;
  }
  const auto pfs = pfsOf(leases);
  auto locks = state::lockPfs(places.runDirectory, pfs, shortPatience);
  // Read again under the lock: a new start of this domain may have taken over.
  const auto plan = plan::planRelease(parsed.uuid, parsed.name, place.database.leases(),
                                      readDevices(place.kernel, leases), place.kernel.bootId());
  logWarnings(apply::run(plan, place.tools, std::move(locks)));
}

void reconnect(const domain::ParsedDomain& parsed, const Places& places) {
  Workplace place(places, shortPatience, shortPatience);
  logWarnings(apply::adoptLeases(place.database, {parsed}, {parsed.uuid}, place.kernel.bootId()));
  // Only what the running guest has: an attach for its next start may have added leases since.
  for (const auto& lease : parsed.leases) {
    place.database.setLeaseState(parsed.uuid, lease.vfName, lease.generation, LeaseState::running,
                                 place.kernel.bootId());
  }
}

}  // namespace vfpass::hook
