#include "operations.hpp"

#include <syslog.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "vfpass/apply/adopt_leases.hpp"
#include "vfpass/apply/device_owner.hpp"
#include "vfpass/apply/quarantine_places.hpp"
#include "vfpass/apply/recover.hpp"
#include "vfpass/apply/run.hpp"
#include "vfpass/base/default_deadlines.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/domain/domain_xml.hpp"
#include "vfpass/error.hpp"
#include "vfpass/events/journal_event.hpp"
#include "vfpass/host/system_kernel.hpp"
#include "vfpass/plan/plan_hook.hpp"
#include "vfpass/state/locks.hpp"
#include "vfpass/state/verification_records.hpp"

namespace vfpass::hook {
namespace {

using std::chrono::milliseconds;

host::Deadlines kernelDeadlines(const Places& places) {
  host::Deadlines limits;
  limits.bind = deadlines::hookBind;
  limits.createVfs = deadlines::hookCreateVfs;
  limits.removeVfs = deadlines::hookRemoveVfs;
  limits.netlink = deadlines::hookNetlink;
  limits.fabric = deadlines::hookFabric;
  limits.end = places.deadline;
  return limits;
}

milliseconds untilDeadline(const Places& places) {
  return std::chrono::duration_cast<milliseconds>(places.deadline -
                                                  std::chrono::steady_clock::now());
}

// Empty: the hook changes no XML and therefore seals nothing.
const SealKey noKey;

struct Resources {
  host::SystemKernel kernel;
  state::Database database;
  apply::Tools tools;

  explicit Resources(const Places& places)
      : kernel("/", kernelDeadlines(places)),
        database(places.stateDirectory, state::Database::Open::createIfMissing,
                 std::min(deadlines::hookDatabase, untilDeadline(places))),
        tools{kernel, database, nullptr, domain::builtInTemplates(), noKey, places.runDirectory} {
    tools.lockTimeout =
        std::max(untilDeadline(places) - deadlines::hookWork, deadlines::hookLeastLock);
    tools.deadline = places.deadline;
    database.setCurrentBoot(kernel.bootId());
  }
};

std::vector<PciAddress> pfsOf(const std::vector<Lease>& leases) {
  std::set<PciAddress> pfs;
  for (const auto& lease : leases) {
    pfs.insert(lease.pf);
  }
  return {pfs.begin(), pfs.end()};
}

void readDevice(host::SystemKernel& kernel, const Lease& lease, const std::vector<Lease>& leases,
                const std::vector<PciAddress>& devices, Inventory& inventory) {
  if (!isVf(lease)) {
    if (auto function = kernel.readFunction(lease.device)) {
      inventory.functions.push_back(std::move(*function));
    }
  } else if (findPf(inventory, lease.pf) == nullptr) {
    inventory.pfs.push_back(kernel.readPf(lease.pf, devices));
    PhysicalFunction& pf = inventory.pfs.back();
    if (std::ranges::any_of(
            leases, [&](const Lease& each) { return each.pf == lease.pf && migrates(each); })) {
      noteMigratable(pf, kernel.migratableVfs(lease.pf));
    }
    if (pf.vfs.empty()) {  // the start creates them, with the attributes that the mode has
      pf.eswitchMode = kernel.readPfSettings(lease.pf).eswitchMode;
    }
  }
}

// Reads only the PFs, VFs and functions of these leases: a host can have many.
Inventory readDevices(host::SystemKernel& kernel, const std::vector<Lease>& leases) {
  Inventory inventory;
  std::vector<PciAddress> devices;
  std::transform(leases.begin(), leases.end(), std::back_inserter(devices),
                 [](const Lease& lease) { return lease.device; });
  for (const auto& lease : leases) {
    try {
      readDevice(kernel, lease, leases, devices, inventory);
    } catch (const Error& error) {
      syslog(LOG_WARNING, "%s",
             printableLine(error.what()).c_str());  // the plan reports the missing device
    }
  }
  inventory.holders = kernel.findHolders(devices);
  inventory.unsafeInterrupts = kernel.unsafeInterrupts();
  inventory.iommuPresent = kernel.iommuPresent();
  return inventory;
}

// libvirt applies the elements, whatever the metadata says.
void requireSameElements(const CalledDomain& parsed) {
  const auto differences = domain::elementDifferences(parsed.xml, parsed.leases);
  if (!differences.empty()) {
    throw Error("the devices in the domain XML are not those that vfpass attached: " +
                    join(differences, "; "),
                "run `vfpass attach " + shellArgument(parsed.name) + "`");
  }
}

// Only if the database has no lease of this domain: then the database was lost.
apply::Adoption adoptLostLeases(const domain::ParsedDomain& parsed, const Places& places,
                                Resources& place, const std::vector<Uuid>& active) {
  if (!place.database.leasesOf(parsed.uuid).empty()) {
    return {};
  }
  auto adoption = apply::adoptLeases(place.database, place.kernel,
                                     state::readSealKey(places.sealKey), {parsed}, active);
  for (const auto& line : adoption.adopted) {
    syslog(LOG_NOTICE, "%s", line.c_str());
  }
  return adoption;
}

void rebuildLostLeases(const domain::ParsedDomain& parsed, const Places& places, Resources& place,
                       const std::vector<Uuid>& active) {
  const auto adoption = adoptLostLeases(parsed, places, place, active);
  if (!adoption.refused.empty()) {
    const std::string name = printable(parsed.name);
    throw Error("domain " + name + ": no lease in the state database, and " +
                    adoption.refused.front().reason,
                "run `vfpass attach " + printable(shellQuoted(parsed.name)) + "`",
                ExitCode::refused);
  }
}

// The start applies the leases that attach recorded, so the XML's metadata must match them.
void requireOwnMetadata(const domain::ParsedDomain& parsed, const Places& places,
                        Resources& place) {
  rebuildLostLeases(parsed, places, place, {});
  plan::throwObjections("domain " + printable(parsed.name) + " cannot start",
                        plan::checkMetadata(parsed.uuid, parsed.name, parsed.leases,
                                            place.database.leasesOf(parsed.uuid)));
}

// Quick, and creates nothing: every domain that starts or stops asks, managed or not.
bool hasLeases(const Uuid& domain, const Places& places) {
  const state::Database database(places.stateDirectory, state::Database::Open::readOnly,
                                 std::min(deadlines::hookDatabase, untilDeadline(places)));
  return !database.leasesOf(domain).empty();
}

// The leases in the metadata of an XML that libvirt has passed; none if it cannot be read.
std::optional<domain::ParsedDomain> carriedLeases(const std::string& xml) {
  try {
    if (domain::mayBeManaged(xml)) {
      auto parsed = domain::parseDomain(xml);
      return parsed.leases.empty() ? std::nullopt : std::optional(std::move(parsed));
    }
  } catch (const Error& error) {
    syslog(LOG_WARNING, "%s", printableLine(error.what()).c_str());
  }
  return std::nullopt;
}

// If the database was lost while the guest ran, the guest may have left data in its devices. What
// is not rebuilt does not keep the domain from stopping: it may be the metadata of ended leases.
bool rebuildAfterRun(const Uuid& domain, const std::string& xml, const Places& places) {
  const auto parsed = carriedLeases(xml);
  if (!parsed || parsed->uuid != domain) {
    return false;
  }
  Resources place(places);
  const auto adoption = adoptLostLeases(*parsed, places, place, {domain});
  for (const auto& refused : adoption.refused) {
    syslog(LOG_WARNING, "%s", printableLine(refused.reason).c_str());
  }
  return !adoption.adopted.empty();
}

bool isIdle(const std::vector<Lease>& leases) {
  return std::all_of(leases.begin(), leases.end(),
                     [](const Lease& lease) { return lease.state == LeaseState::reserved; });
}

// Whether the domain had this device when it ended. True if its XML cannot be read: then its guest
// may have left data in the device.
bool hasDevice(const std::string& xml, const Lease& lease) {
  try {
    const auto parsed = domain::parseDomain(xml);
    return !parsed.claimProblem.empty() ||
           std::ranges::find(parsed.claims, lease.device, &Claim::device) != parsed.claims.end();
  } catch (const Error&) {
    return true;
  }
}

// Without the devices that an unfinished operation takes over from the domain or leaves with it,
// and those that it has left with the host, unless the domain has got them by a start since.
std::vector<Lease> givenToGuest(const Uuid& domain, const std::string& xml,
                                const state::Database& database) {
  std::vector<Lease> leases = database.leasesOf(domain);
  const auto open = database.openOperationsOf(domain);
  std::erase_if(leases, [&](const Lease& lease) {
    return apply::isDomains(lease, open) || (apply::isHosts(lease, open) && !hasDevice(xml, lease));
  });
  return leases;
}

// No guest has had them, so they are not scrubbed: an unfinished attach, to which they are left,
// had yet to plug them in. From now on its recovery knows that the guest into which it would do so
// has stopped.
void returnUnplugged(const Uuid& domain, const std::string& xml, Resources& place) {
  const auto open = place.database.openOperationsOf(domain);
  for (const Lease& lease : place.database.leasesOf(domain)) {
    if (lease.state != LeaseState::reserved && apply::isYetToBePlugged(lease, open) &&
        !hasDevice(xml, lease)) {
      place.database.setLeaseState(domain, lease.entry, lease.generation, LeaseState::reserved,
                                   place.kernel.bootId());
    }
  }
}

void logWarnings(const std::vector<std::string>& warnings) {
  for (const auto& warning : warnings) {
    syslog(LOG_WARNING, "%s", printableLine(warning).c_str());
  }
}

void logRecovered(const apply::Recovered& recovered) {
  for (const auto& work : recovered.done) {
    events::Subject subject;
    subject.operation = events::Operation::recover;
    subject.vm = work.domainName;
    subject.domain = work.domain;
    const std::string line = printableLine(work.line);
    if (!events::sendEntry(events::eventEntry(subject, {events::Result::done, line}, program))) {
      syslog(LOG_WARNING, "%s", line.c_str());
    }
  }
  logWarnings(recovered.warnings);
}

constexpr std::size_t limit = std::size_t{16} << 20U;
constexpr std::size_t longestMark = 64;  // of those that mayBeManaged() looks for

std::string tailOf(std::string_view text) {
  return std::string(text.substr(text.size() - std::min(text.size(), longestMark)));
}

// Searches in text beyond the limit, which is not kept.
class Overflow {
 public:
  explicit Overflow(std::string_view kept) : window_(tailOf(kept)) {}

  void add(std::string_view text) {
    window_ += text;
    found_ = found_ || domain::mayBeManaged(window_);
    window_ = tailOf(window_);
  }

  [[nodiscard]] bool found() const { return found_; }

 private:
  std::string window_;
  bool found_ = false;
};

std::size_t readSome(int descriptor, std::array<char, 65536>& buffer) {
  for (;;) {
    const ssize_t count = read(descriptor, buffer.data(), buffer.size());
    if (count >= 0) {
      return static_cast<std::size_t>(count);
    }
    if (errno != EINTR) {
      throw Error("cannot read the domain XML from libvirt: " + errnoText(errno));
    }
  }
}

}  // namespace

std::vector<Lease> prepare(const CalledDomain& parsed, const Places& places) {
  if (const auto refusal = domain::refusalIn(parsed.xml)) {
    throw Error(*refusal);
  }
  if (!parsed.managed) {
    throw Error("the domain has a device attached by vfpass, but no vfpass metadata",
                "run `vfpass attach " + printable(shellQuoted(parsed.name)) + "`");
  }
  if (!parsed.metadataProblem.empty()) {
    throw Error("cannot read the vfpass metadata in the domain XML: " + parsed.metadataProblem,
                "run `vfpass attach " + printable(shellQuoted(parsed.name)) + "`");
  }
  domain::requireKnownClaims(parsed);
  requireSameElements(parsed);
  Resources place(places);
  const auto recovered = apply::recover(place.tools, parsed.uuid);
  logRecovered(recovered);
  apply::throwUnrecovered(recovered.unrecovered);
  requireOwnMetadata(parsed, places, place);
  const auto pfs = pfsOf(parsed.leases);
  // planPrepare compares again under the locks: another command may have changed the leases.
  auto locks = apply::lockForStart(place.tools, parsed.uuid, pfs, deadlines::hookOperation);
  Inventory inventory = readDevices(place.kernel, parsed.leases);
  inventory.quarantined =
      apply::locateAmong(place.database.quarantined(), parsed.leases, place.tools);
  const auto decision =
      plan::planPrepare(parsed.uuid, parsed.name, parsed.leases, place.database.leases(), inventory,
                        place.kernel.bootId());
  plan::throwObjections("domain " + printable(parsed.name) + " cannot start", decision.objections);
  logWarnings(apply::run(decision.plan, place.tools, std::move(locks)));
  return parsed.leases;
}

std::vector<Lease> markRunning(const Uuid& domain, const std::string& /*xml*/,
                               const Places& places) {
  if (!hasLeases(domain, places)) {
    return {};
  }
  Resources place(places);
  const std::string bootId = place.kernel.bootId();
  std::vector<Lease> marked;
  for (const auto& lease : place.database.leasesOf(domain)) {
    if (lease.state == LeaseState::starting) {
      place.database.setLeaseState(lease.domain, lease.entry, lease.generation, LeaseState::running,
                                   bootId);
      marked.push_back(lease);
    }
  }
  // Verification, if the mapping enables it, is left to a systemd unit: libvirt waits for the hook.
  state::markStarted(places.runDirectory, domain);
  return marked;
}

std::vector<Lease> release(const Uuid& domain, const std::string& xml, const Places& places) {
  if (!hasLeases(domain, places) && !rebuildAfterRun(domain, xml, places)) {
    return {};
  }
  state::removeMarks(places.runDirectory, domain);
  Resources place(places);
  const auto leases = place.database.leasesOf(domain);
  if (isIdle(leases)) {
    return {};
  }
  auto locks = state::lockPfs(places.runDirectory, pfsOf(leases), place.tools.remainingTimeout());
  // Read again under the lock: this domain may have started again in the meantime.
  const auto plan = plan::planRelease(domain, leases.front().domainName,
                                      givenToGuest(domain, xml, place.database),
                                      readDevices(place.kernel, leases), place.kernel.bootId());
  returnUnplugged(domain, xml, place);
  logWarnings(apply::run(plan, place.tools, std::move(locks)));
  return leases;
}

std::vector<Lease> reconnect(const CalledDomain& parsed, const Places& places) {
  Resources place(places);
  // Only the devices of the running guest: an attach for its next start may have added leases.
  for (const auto& lease : parsed.leases) {
    if (lease.domain == parsed.uuid) {
      place.database.setLeaseState(parsed.uuid, lease.entry, lease.generation, LeaseState::running,
                                   place.kernel.bootId());
    }
  }
  rebuildLostLeases(parsed, places, place, {parsed.uuid});
  return {};
}

DomainInput readInput(int descriptor) {
  DomainInput input;
  std::array<char, 65536> buffer{};
  std::size_t count = 0;
  while (input.xml.size() < limit && (count = readSome(descriptor, buffer)) > 0) {
    input.xml.append(buffer.data(), count);
  }
  Overflow rest(input.xml);
  while (count > 0 && (count = readSome(descriptor, buffer)) > 0) {
    input.complete = false;
    rest.add({buffer.data(), count});
  }
  input.mayBeManaged = domain::mayBeManaged(input.xml) || rest.found();
  return input;
}

std::string errorLine(const Error& error) {
  std::string line = error.what();
  if (!error.remedy().empty()) {
    line += "; " + error.remedy();
  }
  return printableLine(line);
}

}  // namespace vfpass::hook
