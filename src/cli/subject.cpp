#include "subject.hpp"

#include <algorithm>
#include <set>

#include "vfpass/base/text.hpp"
#include "vfpass/plan/check_function.hpp"
#include "vfpass/plan/select_pf.hpp"

namespace vfpass::cli {
namespace {

std::optional<domain::ParsedDomain> parseQuietly(Session& session, const DomainDescription& domain,
                                                 const std::string& xml) {
  try {
    return domain::parseDomain(xml);
  } catch (const Error& error) {
    // Somebody else's domain must not keep this one from being served; its devices still count in
    // the kernel, where a VF that is in use shows.
    session.warn("domain " + printable(domain.name) + " is left out: " + error.what());
    return std::nullopt;
  }
}

void addClaims(const domain::ParsedDomain& parsed, DomainSummary& summary) {
  summary.claims.insert(summary.claims.end(), parsed.claims.begin(), parsed.claims.end());
  summary.macAddresses.insert(summary.macAddresses.end(), parsed.macAddresses.begin(),
                              parsed.macAddresses.end());
  for (const auto& lease : parsed.leases) {
    if (lease.settings.mac) {
      summary.macAddresses.push_back(*lease.settings.mac);
    }
  }
}

void surveyOne(Session& session, const DomainDescription& domain, DomainSurvey& survey) {
  DomainSummary summary{domain.uuid, domain.name, domain.active, domain.persistent, {}, {}};
  const auto look = [&](const std::string& xml) {
    const auto parsed = xml.empty() ? std::nullopt : parseQuietly(session, domain, xml);
    if (parsed) {
      addClaims(*parsed, summary);
    }
    return parsed;
  };
  const auto persistent = look(domain.persistentXml);
  if (persistent && persistent->managed) {
    survey.managed.push_back(*persistent);
  }
  look(domain.liveXml);
  if (domain.active) {
    survey.active.push_back(domain.uuid);
  }
  survey.summaries.push_back(std::move(summary));
}

[[noreturn]] void throwProblems(const std::string& subject,
                                const std::vector<config::Problem>& problems) {
  std::vector<std::string> lines;
  for (const auto& problem : problems) {
    lines.push_back(toString(problem));
  }
  throw Error(subject + ":\n  " + join(lines, "\n  "),
              "`vfpass check` shows every mistake of every file", ExitCode::badInput);
}

// Mistakes in files of other VMs do not stop this one, but its user should know of them.
void judgeProblems(Session& session, const Mapping& mapping) {
  const auto& configuration = session.configuration();
  std::vector<config::Problem> ours;
  auto problems = config::crossCheck(configuration.mappings);
  problems.insert(problems.end(), configuration.problems.begin(), configuration.problems.end());
  for (const auto& problem : problems) {
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
    throwProblems("the configuration for VM " + printable(mapping.vm) + " has mistakes", ours);
  }
}

}  // namespace

DomainSurvey surveyDomains(Session& session) {
  DomainSurvey survey;
  for (const auto& domain : session.hypervisor().listDomains()) {
    surveyOne(session, domain, survey);
  }
  return survey;
}

Subject findSubject(Session& session, const std::string& vm) {
  const auto& configuration = session.configuration();
  const Mapping* mapping = config::findMapping(configuration, vm, vm);
  const auto found = session.hypervisor().findDomain(vm);
  if (mapping == nullptr && found) {
    mapping = config::findMapping(configuration, found->name, toString(found->uuid));
  }
  if (mapping == nullptr) {
    const std::string message = "no mapping for VM " + printable(vm) + " in " +
                                (session.options().configDirectory / "vms").string() + "/*.yaml";
    if (!configuration.problems.empty()) {
      throwProblems(message + "; files with mistakes were left out", configuration.problems);
    }
    throw Error(message, "write one with `vm: " + printable(vm) + "`, see examples/",
                ExitCode::badInput);
  }
  judgeProblems(session, *mapping);
  const auto domain = found ? found : session.hypervisor().findDomain(mapping->vm);
  if (!domain) {
    throw Error(toString(mapping->vmPlace) + ": libvirt has no domain " + printable(mapping->vm),
                "`virsh list --all` shows what there is", ExitCode::badInput);
  }
  Subject subject{*mapping, *domain, {}};
  std::copy_if(configuration.mappings.begin(), configuration.mappings.end(),
               std::back_inserter(subject.otherMappings),
               [&](const Mapping& each) { return each.file != mapping->file; });
  return subject;
}

std::vector<Lease> leasesOf(const std::vector<Lease>& leases, const Uuid& domain) {
  std::vector<Lease> own;
  std::copy_if(leases.begin(), leases.end(), std::back_inserter(own),
               [&](const Lease& lease) { return lease.domain == domain; });
  return own;
}

plan::AttachInput attachInput(Session& session, const Subject& subject, const DomainSurvey& survey,
                              const std::vector<Lease>& leases) {
  plan::AttachInput input;
  input.mapping = subject.mapping;
  input.policy = session.configuration().host;
  const auto own = leasesOf(leases, subject.domain.uuid);
  input.inventory = session.inventory(plan::namedFunctions(own, subject.mapping.gpus));
  input.domain = subject.domain.uuid;
  input.domainName = subject.domain.name;
  input.active = subject.domain.active;
  input.leases = leases;
  input.domains = survey.summaries;
  input.otherMappings = subject.otherMappings;
  input.bootId = session.kernel().bootId();
  const auto isFresh = [&](const auto& entry) {
    return std::none_of(own.begin(), own.end(),
                        [&](const Lease& lease) { return lease.vfName == entry.name; });
  };
  const auto& [vfs, gpus] = std::tie(subject.mapping.vfs, subject.mapping.gpus);
  const auto fresh = std::count_if(vfs.begin(), vfs.end(), isFresh) +
                     std::count_if(gpus.begin(), gpus.end(), isFresh);
  const std::string& xml = subject.domain.persistentXml;
  input.placements = domain::placeDevices(xml, static_cast<std::size_t>(fresh));
  input.xmlCurrent = domain::carriesLeases(xml, own);
  return input;
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
  for (const auto& gpu : subject.mapping.gpus) {
    pfs.insert(gpu.pci);
  }
  for (const auto& lease : leasesOf(leases, subject.domain.uuid)) {
    pfs.insert(lease.pf);
  }
  return {pfs.begin(), pfs.end()};
}

}  // namespace vfpass::cli
