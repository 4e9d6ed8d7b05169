#include "subject.hpp"

#include <algorithm>
#include <set>

#include "host_facts.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/domain/domain_xml.hpp"
#include "vfpass/domain/read_domain_facts.hpp"
#include "vfpass/inventory/read_inventory.hpp"
#include "vfpass/plan/select_pf.hpp"

namespace vfpass::commands {
namespace {

// Whether the mapping has an entry for each of these leases.
bool describes(const Mapping& mapping, const std::vector<Lease>& leases) {
  std::set<std::string> entries;
  for (const auto& vf : mapping.vfs) {
    entries.insert(vf.name);
  }
  for (const auto& function : mapping.functions) {
    entries.insert(function.name);
  }
  return !leases.empty() && std::all_of(leases.begin(), leases.end(), [&](const Lease& lease) {
    return entries.contains(lease.entry);
  });
}

[[noreturn]] void throwRenamed(const Mapping& mapping, const DomainDescription& domain) {
  const std::string name = printable(domain.name);
  throw Error(printable(toString(mapping.vmPlace)) + ": libvirt has no domain " +
                  printable(mapping.vm) + ", and domain " + name +
                  " has leases that match the mapping; it was probably renamed",
              "set `vm: " + name + "` in the mapping", ExitCode::badInput);
}

/// Leases refer to a domain by UUID, mappings by name: after `virsh domrename` the domain has
/// leases but no mapping, and its mapping has no domain. In that case these throw (bad input) with
/// both names; otherwise they do nothing.
void throwIfRenamed(Session& session, const DomainDescription& domain) {
  const auto leases = leasesOf(session.readLeases(), domain.uuid);
  for (const auto& mapping : session.configuration().mappings) {
    if (describes(mapping, leases) && !session.hypervisor().findDomain(mapping.vm)) {
      throwRenamed(mapping, domain);
    }
  }
}

void throwIfRenamed(Session& session, const Mapping& mapping) {
  const auto leases = session.readLeases();
  std::set<Uuid> domains;
  for (const auto& lease : leases) {
    domains.insert(lease.domain);
  }
  for (const auto& uuid : domains) {
    const auto domain = describes(mapping, leasesOf(leases, uuid))
                            ? session.hypervisor().findDomain(toString(uuid))
                            : std::nullopt;
    if (domain &&
        config::findMapping(session.configuration(), domain->name, toString(uuid)) == nullptr) {
      throwRenamed(mapping, *domain);
    }
  }
}

[[noreturn]] void throwProblems(const std::string& subject,
                                const std::vector<config::Problem>& problems) {
  std::vector<std::string> lines;
  for (const auto& problem : problems) {
    lines.push_back(toString(problem));
  }
  throw Error(subject + ":\n  " + join(lines, "\n  "), mistakesOf(problems),
              "correct " + std::string(problems.size() == 1 ? "it" : "them") +
                  "; `vfpass check` lists the problems of all files");
}

// Of these files, all together.
std::vector<config::Problem> problemsOf(const config::Configuration& configuration,
                                        const std::set<std::string>& files) {
  std::vector<config::Problem> problems;
  std::ranges::copy_if(configuration.problems, std::back_inserter(problems),
                       [&](const auto& problem) { return files.contains(problem.place.file); });
  return problems;
}

std::string countOfMistakes(const std::vector<config::Problem>& problems) {
  return std::to_string(problems.size()) + (problems.size() == 1 ? " mistake" : " mistakes");
}

// Files whose `vm:` could not be read; the directories and host.yaml do not count.
std::set<std::string> unreadableFiles(const config::Configuration& configuration) {
  std::set<std::string> files;
  for (const auto& each : configuration.faulty) {
    if (each.vm.empty()) {
      files.insert(each.file);
    }
  }
  return files;
}

// Devices of the host that vfpass did not attach, in a domain that no other program manages.
bool hasHandMade(const DomainXml& xml) {
  return !xml.empty() && domain::managingTool(xml).name.empty() &&
         !domain::hostElements(xml).empty();
}

// Only for the remedy: if libvirt does not answer, it is the general one.
bool canImport(Session& session, const std::string& nameOrUuid) {
  if (!session.root().isLive()) {
    return false;
  }
  try {
    const auto domain = session.hypervisor().findDomain(nameOrUuid);
    return domain && (hasHandMade(domain->persistentXml) || hasHandMade(domain->liveXml));
  } catch (const Error&) {
    return false;
  }
}

std::string remedyForNoMapping(Session& session, const std::string& vm, const std::string& uuid) {
  if (canImport(session, uuid)) {
    return "run `vfpass import " + shellArgument(vm) +
           "` to propose one for the devices that it has, or `vfpass init " + shellArgument(vm) +
           "` for others";
  }
  const auto& configuration = session.configuration();
  std::vector<std::string> names;
  std::ranges::transform(configuration.mappings, std::back_inserter(names), &Mapping::vm);
  std::ranges::transform(configuration.faulty, std::back_inserter(names), &config::FaultyFile::vm);
  if (const auto near = closestSpelling(vm, names)) {
    return "did you mean `" + printable(*near) + "`?";
  }
  return "write one with `vm: " + printable(vm) + "`, or run `vfpass init " + shellArgument(vm) +
         "` to propose one";
}

// Throws for problems of this VM's configuration; warns about those of other VMs.
void throwOwnProblems(Session& session, const Mapping& mapping) {
  std::vector<config::Problem> ours;
  for (const auto& problem : session.configurationProblems()) {
    const bool concerns = problem.place.file == mapping.file ||
                          problem.message.find(mapping.file) != std::string::npos ||
                          problem.place.file.ends_with("/host.yaml");
    if (concerns) {
      ours.push_back(problem);
    } else {
      session.warn(toString(problem));
    }
  }
  if (!ours.empty()) {
    throwProblems("invalid configuration of VM " + printable(mapping.vm), ours);
  }
}

Subject withOthers(Session& session, const Mapping& mapping, const DomainDescription& domain) {
  Subject subject{mapping, domain, {}, {}, {}};
  std::ranges::copy_if(session.configuration().mappings, std::back_inserter(subject.otherMappings),
                       [&](const Mapping& each) { return each.file != mapping.file; });
  return subject;
}

// `mapping` is the one that names the domain as the user did, or null.
Subject subjectOf(Session& session, const DomainDescription& domain, const Mapping* mapping) {
  // Throws if there are two, one with the name and one with the UUID.
  const Mapping* ofDomain =
      config::findMapping(session.configuration(), domain.name, toString(domain.uuid));
  if (mapping == nullptr) {
    mapping = ofDomain;
  }
  if (mapping == nullptr) {
    throwIfRenamed(session, domain);
    throwNoMapping(session, domain.name, toString(domain.uuid));
  }
  throwOwnProblems(session, *mapping);
  return withOthers(session, *mapping, domain);
}

MappingFile fileNamedBy(Session& session, const std::string& name, const std::string& uuid) {
  const auto& configuration = session.configuration();
  if (const Mapping* mapping = config::findMapping(configuration, name, uuid)) {
    return {mapping->file, mapping};
  }
  const auto* faulty = config::findFaulty(configuration, name, uuid);
  return {faulty == nullptr ? "" : faulty->file, nullptr};
}

}  // namespace

MappingFile findMappingFile(Session& session, const std::string& vm,
                            std::optional<Error>* unanswered) {
  MappingFile found = fileNamedBy(session, vm, vm);
  if (!found.file.empty() || !session.root().isLive()) {
    return found;
  }
  std::optional<DomainDescription> domain;
  try {
    domain = session.hypervisor().findDomain(vm);
  } catch (const Error& error) {
    if (unanswered != nullptr) {
      *unanswered = error;
    }
  }
  return domain ? fileNamedBy(session, domain->name, toString(domain->uuid)) : found;
}

const Mapping* mappingNamedBy(Session& session, const std::string& vm) {
  std::optional<Error> unanswered;
  const MappingFile found = findMappingFile(session, vm, &unanswered);
  if (unanswered) {
    session.warn(withRemedy(*unanswered));
  }
  return found.mapping;
}

void throwIfFaulty(Session& session, const std::string& name, const std::string& uuid) {
  const auto& configuration = session.configuration();
  if (const auto* faulty = config::findFaulty(configuration, name, uuid)) {
    const auto problems = problemsOf(configuration, {faulty->file});
    throwProblems("the mapping of VM " + printable(name) + " has " + countOfMistakes(problems),
                  problems);
  }
}

void throwNoMapping(Session& session, const std::string& name, const std::string& uuid) {
  throwIfFaulty(session, name, uuid);
  const auto& configuration = session.configuration();
  const std::string message = "no mapping for VM " + printable(name) + " in " +
                              (session.options().configDirectory / "vms").string() + "/*.yaml";
  std::set<std::string> files = unreadableFiles(configuration);
  files.insert(session.options().configDirectory.string());
  files.insert((session.options().configDirectory / "vms").string());
  if (const auto problems = problemsOf(configuration, files); !problems.empty()) {
    throwProblems(message + "; it may be among these, which cannot be read", problems);
  }
  throw Error(message, remedyForNoMapping(session, name, uuid), ExitCode::badInput);
}

void requireSoundMapping(Session& session, const std::string& vm) {
  if (const Mapping* mapping = config::findMapping(session.configuration(), vm, vm)) {
    throwOwnProblems(session, *mapping);
  } else {
    throwIfFaulty(session, vm, vm);
  }
}

Subject findSubject(Session& session, const std::string& vm) {
  requireSoundMapping(session, vm);
  const Mapping* mapping = config::findMapping(session.configuration(), vm, vm);
  const auto found = session.hypervisor().findDomain(vm);
  if (found) {
    return subjectOf(session, *found, mapping);
  }
  if (mapping == nullptr) {
    throwNoMapping(session, vm, vm);
  }
  const auto domain = session.hypervisor().findDomain(mapping->vm);
  if (!domain) {
    throwIfRenamed(session, *mapping);
    throw Error(toString(mapping->vmPlace) + ": libvirt has no domain " + printable(mapping->vm),
                "run `virsh list --all` to list the domains", ExitCode::badInput);
  }
  return withOthers(session, *mapping, *domain);
}

Subject findSubject(Session& session, const DomainDescription& domain) {
  return subjectOf(session, domain, nullptr);
}

std::vector<Lease> leasesOf(const std::vector<Lease>& leases, const Uuid& domain) {
  std::vector<Lease> own;
  std::ranges::copy_if(leases, std::back_inserter(own),
                       [&](const Lease& lease) { return lease.domain == domain; });
  return own;
}

Scope scopeFor(const DomainDescription& domain, const ScopeOptions& options) {
  const std::string name = "domain " + printable(domain.name);
  if (options.config && !domain.persistent) {
    throw Error(name + " is transient and has no persistent configuration",
                "omit --config, or define the domain first (`virsh define`)", ExitCode::badInput);
  }
  if (options.live && !domain.active) {
    throw Error(name + " is not running", "omit --live, or start the domain first",
                ExitCode::badInput);
  }
  if (options.live == options.config) {  // neither or both
    return {domain.persistent, domain.active};
  }
  return {options.config, options.live};
}

std::vector<Lease> liveLeases(Session& session, const DomainDescription& domain,
                              const std::vector<Lease>& leases) {
  const auto parsed = domain::parseDomain(domain.liveXml);
  if (domain::isSealed(parsed, session.sealKey())) {
    return parsed.leases;
  }
  std::vector<Lease> found = leasesOf(leases, domain.uuid);
  const auto plugged = domain::entriesWithDevice(domain.liveXml, found);
  std::erase_if(found, [&](const Lease& lease) { return !plugged.contains(lease.entry); });
  return found;
}

std::vector<PciAddress> pfsOf(const std::vector<Lease>& leases) {
  std::vector<PciAddress> pfs;
  std::ranges::transform(leases, std::back_inserter(pfs), &Lease::pf);
  return pfs;
}

std::vector<PciAddress> pfsOf(const Subject& subject, const Inventory& inventory,
                              const std::vector<Lease>& leases) {
  std::set<PciAddress> pfs;
  std::vector<plan::Objection> raisedLater;
  for (const auto& entry : subject.mapping.vfs) {
    const auto* pf = plan::selectPf(entry.pf, subject.mapping, inventory, entry.place, raisedLater);
    if (pf != nullptr) {
      pfs.insert(pf->address);
    }
  }
  for (const auto& function : subject.mapping.functions) {
    pfs.insert(function.pci);
  }
  for (const auto& lease : leasesOf(leases, subject.domain.uuid)) {
    pfs.insert(lease.pf);
  }
  return {pfs.begin(), pfs.end()};
}

namespace {

Uuid ownerOf(const Mapping& mapping, const std::vector<Lease>& leases) {
  const auto found = std::ranges::find_if(leases, [&](const Lease& lease) {
    return lease.domainName == mapping.vm || toString(lease.domain) == mapping.vm;
  });
  return found == leases.end() ? Uuid{} : found->domain;
}

}  // namespace

void settleNear(Session& session, Subject& subject, const std::vector<Lease>& leases) {
  if (!plan::hasNear(subject.mapping) &&
      std::ranges::none_of(subject.otherMappings, plan::hasNear)) {
    return;
  }
  const Topology topology = inventory::readTopology(session.root(), host::Serials::skip);
  const Inventory inventory = session.inventory({}, {});
  const HostPolicy& policy = session.configuration().host;
  const auto resolve = [&](const Mapping& mapping, const Uuid& domain) {
    return plan::resolveNear({mapping, policy, inventory, topology, leases, domain});
  };
  auto resolution = resolve(subject.mapping, subject.domain.uuid);
  subject.mapping = std::move(resolution.mapping);
  subject.nearFaults = std::move(resolution.faults);
  subject.nearReasons = std::move(resolution.reasons);
  for (auto& mapping : subject.otherMappings) {  // they count where this attach creates VFs
    if (plan::hasNear(mapping)) {
      mapping = resolve(mapping, ownerOf(mapping, leases)).mapping;
    }
  }
}

std::vector<Mapping> nearSettled(Session& session, const Topology& topology,
                                 std::vector<Mapping> mappings) {
  if (std::ranges::none_of(mappings, plan::hasNear)) {
    return mappings;
  }
  const auto leases = leasesOfTree(session);
  const Inventory inventory = session.inventory({}, {});
  const HostPolicy& policy = session.configuration().host;
  for (Mapping& mapping : mappings) {
    const Uuid owner = ownerOf(mapping, leases);
    mapping = plan::resolveNear({mapping, policy, inventory, topology, leases, owner}).mapping;
  }
  return mappings;
}

}  // namespace vfpass::commands
