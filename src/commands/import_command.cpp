#include <algorithm>
#include <array>
#include <iterator>
#include <string>

#include "attach_input.hpp"
#include "command_session.hpp"
#include "commands.hpp"
#include "host_facts.hpp"
#include "survey_domains.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/config/configuration.hpp"
#include "vfpass/doctor/doctor.hpp"
#include "vfpass/domain/read_domain_facts.hpp"
#include "vfpass/imported_mapping.hpp"
#include "vfpass/inventory/read_inventory.hpp"
#include "vfpass/plan/import_mapping.hpp"
#include "vfpass/plan/plan_attach.hpp"
#include "vfpass/report/command_reports.hpp"

namespace vfpass::commands {
namespace {

// The domain whose devices are imported, and the others.
struct ImportSubject {
  DomainDescription domain;
  DomainSurvey survey;
};

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

// Throws (bad input) if libvirt has no such domain, and (refused) if another program manages it:
// OpenStack and others by what the domain's XML says, Proxmox VE and Incus by their own files.
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
    session.warn(toString(pf) + ": " + withRemedy(error));
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

// Reads what importMapping() judges.
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

// Reads the PFs and what files set up at boot.
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

// What attach would refuse now of the mapping with this text: the objections of its plan, without
// places in the file. Warns if they cannot be found.
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

struct ImportOptions {
  std::string vm;
  bool host = false;
  bool write = false;
};

std::string noneText(const std::string& vm) {
  return "domain " + printable(vm) + " has no device that can be taken over";
}

[[noreturn]] void throwNothing(const std::string& vm, const std::vector<LeftOut>& leftOut) {
  if (leftOut.empty()) {
    throw Error("domain " + printable(vm) + " has no device of this host",
                "run `vfpass init " + shellArgument(vm) + "` to propose a mapping");
  }
  std::vector<std::string> lines;
  std::ranges::transform(leftOut, std::back_inserter(lines), [](const LeftOut& each) {
    return printable(describe(each)) + (each.remedy.empty() ? "" : "; " + each.remedy);
  });
  throw Error(noneText(vm) + ":\n  " + join(lines, "\n  "),
              "run `vfpass init " + shellArgument(vm) + "` to propose other devices");
}

void warnOf(Session& session, const ImportedMapping& mapping) {
  const auto withRemedy = [](const std::string& text, const std::string& remedy) {
    return text + (remedy.empty() ? "" : "; " + remedy);
  };
  for (const LeftOut& each : mapping.leftOut) {
    session.warn(withRemedy("not taken over: " + describe(each), each.remedy));
  }
  for (const ImportRefusal& each : mapping.refusals) {
    session.warn(withRemedy("attach would refuse: " + each.message, each.remedy));
  }
}

// Programs get the reasons as they do beside entries.
ExitCode reportNothing(Session& session, const report::ImportReport& report) {
  if (!session.style().json || report.mapping.leftOut.empty()) {
    throwNothing(report.vm, report.mapping.leftOut);
  }
  warnOf(session, report.mapping);
  session.warn(noneText(report.vm));
  report::writeImport(session.out(), report, "", "", session.style());
  return ExitCode::failed;
}

ExitCode importVm(Session& session, const ImportOptions& options) {
  const ImportSubject subject = importSubject(session, options.vm);
  report::ImportReport report;
  report.vm = subject.domain.name;
  report.command = "vfpass import " + shellArgument(options.vm);
  report.schemaFile = VFPASS_DATA_DIRECTORY "/mapping.schema.json";
  const plan::ImportInput input = importInput(session, subject);
  report.mapping = plan::importMapping(input);
  if (report.mapping.empty()) {
    return reportNothing(session, report);
  }
  report.mapping.refusals = importRefusals(session, subject, input, report::mappingText(report));
  warnOf(session, report.mapping);
  const std::string text = report::mappingText(report);
  std::string file;
  if (options.write) {
    file = config::writeNewMapping(session.options().configDirectory,
                                   {report.vm, report.vm, toString(subject.domain.uuid), text});
  }
  if (options.write && !session.style().json) {
    reportCreatedMapping(session, file, report.vm);
  } else {
    report::writeImport(session.out(), report, text, file, session.style());
  }
  return ExitCode::done;
}

ExitCode importHost(Session& session, const ImportOptions& options) {
  report::ImportHostReport report{"vfpass import --host", importedHost(session)};
  if (report.host.pfs.empty()) {
    throw Error("nothing to import: no PF of this host has VFs, and no file sets any up at boot",
                "run `vfpass pf list` to list the PFs");
  }
  const std::string text = report::hostText(report);
  std::string file;
  if (options.write) {
    file = config::writeNewHostPolicy(session.options().configDirectory, text).string();
  }
  if (options.write && !session.style().json) {
    reportCreatedHostPolicy(session, file);
  } else {
    report::writeImport(session.out(), report, text, file, session.style());
  }
  return ExitCode::done;
}

ExitCode runImport(Session& session, const ImportOptions& options) {
  if (options.host != options.vm.empty()) {
    throw Error(options.host ? "`vfpass import`: VM " + printable(options.vm) + " excludes --host"
                             : "`vfpass import` needs an argument: VM or --host",
                "run `vfpass import --help`", ExitCode::badInput);
  }
  if (options.write) {
    requireTargetOfThisHost(session, "import");
  }
  return options.host ? importHost(session, options) : importVm(session, options);
}

}  // namespace

void addImport(CLI::App& app, Runner& runner) {
  auto* command = app.add_subcommand(
      "import", "Propose the mapping of a VM that has devices already, or host.yaml, with reasons");
  const auto options = std::make_shared<ImportOptions>();
  command->add_option("vm", options->vm, "Domain name or UUID")->type_name("VM");
  command->add_flag("--host", options->host,
                    "Propose host.yaml from the VF counts, modes and MTUs that the PFs have");
  command->add_flag("--write", options->write,
                    "Save it in the configuration directory, if there is none yet");
  command->callback([&runner, options] {
    runner = [options](Session& session) { return runImport(session, *options); };
  });
}

}  // namespace vfpass::commands
