#include "import_input.hpp"

#include <algorithm>
#include <array>
#include <iterator>

#include "attach_input.hpp"
#include "host_facts.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/config/new_mapping.hpp"
#include "vfpass/doctor/doctor.hpp"
#include "vfpass/domain/read_domain_facts.hpp"
#include "vfpass/inventory/read_inventory.hpp"
#include "vfpass/plan/plan_attach.hpp"

namespace vfpass::commands {
namespace {

// libvirt does not know the VMs of these programs, which start QEMU themselves.
std::string toolWithFiles(const host::Root& root, const std::string& vm) {
  constexpr std::array instances{"var/lib/incus/virtual-machines/", "var/lib/lxd/virtual-machines/",
                                 "var/snap/lxd/common/lxd/virtual-machines/"};
  for (const std::string folder : instances) {
    if (vm.find('/') == std::string::npos && root.exists(folder + vm)) {
      return folder.find("incus") == std::string::npos ? "LXD" : "Incus";
    }
  }
  const std::string folder = "etc/pve/qemu-server";
  for (const std::string& file : root.list(folder)) {
    const auto lines = splitLines(root.readText(folder + "/" + file).value_or(""));
    if (file == vm + ".conf" || std::ranges::find(lines, "name: " + vm) != lines.end()) {
      return "Proxmox VE";
    }
  }
  return {};
}

[[noreturn]] void throwManaged(const std::string& vm, const std::string& tool,
                               const std::string& evidence) {
  throw Error("VM " + printable(vm) + " is managed by " + tool +
                  (evidence.empty() ? "" : ": " + printable(evidence)),
              "change its devices with " + tool + ", which would undo changes by others",
              ExitCode::refused);
}

void requireUnmanaged(const DomainDescription& domain) {
  for (const DomainXml* xml : {&domain.persistentXml, &domain.liveXml}) {
    const auto tool = xml->empty() ? domain::ManagingTool{} : domain::managingTool(*xml);
    if (!tool.name.empty()) {
      throwManaged(domain.name, tool.name, tool.evidence);
    }
  }
}

}  // namespace

ImportSubject importSubject(Session& session, const std::string& vm) {
  const std::string tool = toolWithFiles(session.root(), vm);
  if (!tool.empty()) {
    throwManaged(vm, tool, "");
  }
  if (session.options().sysroot == "/") {
    session.requireLocalLibvirt("import");
  }
  ImportSubject subject;
  subject.survey = surveyDomains(session);
  const DomainDescription* domain = subject.survey.find(vm);
  if (domain == nullptr) {
    std::vector<std::string> names;
    for (const auto& [uuid, each] : subject.survey.domains) {
      names.push_back(each.name);
    }
    const auto near = closestSpelling(vm, names);
    throw Error("libvirt has no domain " + printable(vm),
                near ? "did you mean `" + printable(*near) + "`?"
                     : "run `virsh list --all` to list the domains",
                ExitCode::badInput);
  }
  subject.domain = *domain;
  requireUnmanaged(subject.domain);
  return subject;
}

namespace {

std::vector<HandMadeDevice> handMadeIn(const DomainXml& xml) {
  return xml.empty() ? std::vector<HandMadeDevice>() : domain::readHandMade(xml);
}

std::vector<PciAddress> hostFunctions(const plan::ImportInput& input) {
  std::vector<PciAddress> functions;
  for (const HandMadeDevice& device : input.configured) {
    if (device.host) {
      functions.push_back(*device.host);
    }
  }
  return functions;
}

// A mode that cannot be read is only unknown.
PfSettings settingsOf(Session& session, const PciAddress& pf) {
  try {
    return session.kernel().readPfSettings(pf);
  } catch (const Error& error) {
    session.warn(toString(pf) + ": " + error.what());
    return {};
  }
}

void readModes(Session& session, plan::ImportInput& input) {
  for (const HandMadeDevice& device : input.configured) {
    for (const PhysicalFunction& pf : input.inventory.pfs) {
      const bool concerned =
          device.host &&
          std::ranges::find(pf.vfs, *device.host, &VirtualFunction::address) != pf.vfs.end();
      if (concerned && !input.eswitchModes.contains(pf.address)) {
        if (const auto mode = settingsOf(session, pf.address).eswitchMode) {
          input.eswitchModes.emplace(pf.address, *mode);
        }
      }
    }
  }
}

void readDomain(const ImportSubject& subject, plan::ImportInput& input) {
  const DomainDescription& domain = subject.domain;
  const DomainXml& configured = domain.persistent ? domain.persistentXml : domain.liveXml;
  input.domain = domain.uuid;
  input.configured = handMadeIn(configured);
  input.running = handMadeIn(domain.liveXml);
  input.interfaces = domain::parseDomain(configured).interfaces;
  input.domains = subject.survey.summaries;
  input.pools = subject.survey.pools;
}

// The mapping of this domain, if there is one, is what the import would replace.
void readMappings(Session& session, const DomainDescription& domain, plan::ImportInput& input) {
  const auto uuid = toString(domain.uuid);
  for (const Mapping& mapping : session.configuration().mappings) {
    if (mapping.vm != domain.name && parseUuid(mapping.vm) != domain.uuid) {
      input.otherMappings.push_back(mapping);
    } else {
      session.warn("VM " + printable(domain.name) +
                   " has a mapping already: " + printable(mapping.file));
    }
  }
}

}  // namespace

plan::ImportInput importInput(Session& session, const ImportSubject& subject) {
  plan::ImportInput input;
  readDomain(subject, input);
  readMappings(session, subject.domain, input);
  auto host = topologyReport(session, true);
  warnOfProblems(session, host.topology);
  input.topology = std::move(host.topology);
  input.leases = std::move(host.leases);
  input.inventory = session.inventory(hostFunctions(input));
  input.inventory.quarantined = session.quarantined();
  readModes(session, input);
  input.bootPolicies = doctor::bootPolicies(session.root(), input.topology);
  return input;
}

ImportedHost importedHost(Session& session) {
  const Topology topology = inventory::readTopology(session.root(), host::Serials::skip);
  warnOfProblems(session, topology);
  const Inventory inventory = session.inventory();
  std::map<PciAddress, PfSettings> settings;
  for (const PhysicalFunction& pf : inventory.pfs) {
    settings.emplace(pf.address, settingsOf(session, pf.address));
  }
  return plan::importHost(inventory, settings, doctor::bootPolicies(session.root(), topology));
}

namespace {

// The file is not written yet, and its comments will change the lines.
std::string withoutPlace(const Mapping& mapping, const std::string& message) {
  const auto rest = [&](const auto& entries) -> std::string {
    for (const auto& entry : entries) {
      if (const auto prefix = toString(entry.place) + ": "; message.starts_with(prefix)) {
        return message.substr(prefix.size());
      }
    }
    return {};
  };
  std::string found = rest(mapping.vfs);
  found = found.empty() ? rest(mapping.functions) : found;
  return found.empty() ? message : found;
}

std::vector<plan::Objection> objectionsTo(Session& session, const Subject& subject,
                                          const DomainSurvey& survey,
                                          const std::vector<Lease>& leases) {
  const auto input = attachInput(session, subject, survey, leases, scopeFor(subject.domain, {}),
                                 readHostFor(session, subject, leases));
  return plan::planAttach(input).objections;
}

}  // namespace

std::vector<ImportRefusal> importRefusals(Session& session, const ImportSubject& subject,
                                          const plan::ImportInput& input, const std::string& text) {
  const auto mapping = config::readProposed(text);
  if (!mapping) {
    session.warn("the proposed mapping has mistakes; `vfpass check FILE` lists them");
    return {};
  }
  std::vector<ImportRefusal> refusals;
  try {
    const Subject proposed{*mapping, subject.domain, input.otherMappings, {}, {}};
    for (const auto& objection : objectionsTo(session, proposed, subject.survey, input.leases)) {
      refusals.push_back({withoutPlace(*mapping, objection.message), objection.remedy});
    }
  } catch (const Error& error) {
    session.warn("cannot tell what attach would refuse: " + withRemedy(error));
  }
  return refusals;
}

}  // namespace vfpass::commands
