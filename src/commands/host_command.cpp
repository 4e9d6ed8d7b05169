#include <unistd.h>

#include <algorithm>
#include <array>
#include <tuple>

#include "commands.hpp"
#include "host_policy_input.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/plan/select_pf.hpp"
#include "vfpass/report/command_reports.hpp"

namespace vfpass::commands {
namespace {

// A PF matches its policy if `host apply` would not change it; objections are reported.
void addDecision(Session& session, const PhysicalFunction& pf, const PfPolicy& policy,
                 DefinedUsers& users, report::HostEntry& entry) {
  auto decision = plan::planHost(hostInput(session, pf, policy, users.ofRemoved(pf, policy)));
  objectToSpace(session, decision);
  entry.differs = !decision.plan.steps.empty();
  for (const auto& objection : decision.objections) {
    entry.failures.push_back(commands::withRemedy(objection));
  }
}

report::HostEntry showPf(Session& session, const PhysicalFunction& pf, const HostPolicy& all,
                         DefinedUsers& users) {
  const PfPolicy* policy = plan::policyOf(pf, all);
  PfSettings settings;
  std::vector<std::string> failures;
  try {
    settings = session.kernel().readPfSettings(pf.address);
  } catch (const Error& error) {
    failures.emplace_back(error.what());
  }
  report::HostEntry entry = commands::describePf(pf, settings, policy);
  entry.failures = std::move(failures);
  if (policy != nullptr && entry.failures.empty()) {
    try {
      addDecision(session, pf, *policy, users, entry);
    } catch (const Error& error) {
      entry.failures.push_back(commands::withRemedy(error));
    }
  }
  return entry;
}

// Every PF of the host, then the entries of host.yaml that match no PF.
std::vector<report::HostEntry> showPfs(Session& session, const HostPolicy& policy) {
  const Inventory inventory = session.inventory();
  std::vector<report::HostEntry> entries;
  DefinedUsers users(session);
  for (const auto& pf : inventory.pfs) {
    entries.push_back(showPf(session, pf, policy, users));
  }
  for (const auto& entry : policy.pfs) {
    try {
      commands::pfOf(entry, policy, inventory);
    } catch (const Error& error) {
      entries.push_back(commands::failedEntry(entry, error));
    }
  }
  return entries;
}

std::vector<report::SoftRoceEntry> showLinks(Session& session) {
  const auto links = session.kernel().readRdmaLinks();
  if (session.configuration().softRoce.empty() &&
      std::ranges::none_of(links, &RdmaLink::softRoce)) {
    return {};
  }
  return commands::describeLinks(plan::planSoftRoce(softRoceInput(session)).decisions);
}

ExitCode show(Session& session) {
  const HostPolicy& policy = soundPolicy(session);
  const report::HostReport report{showPfs(session, policy), showLinks(session),
                                  describeMemoryCheck(session)};
  report::writeHost(session.pagedOut(), report, session.style());
  reportFailures(session, report);
  const auto isPending = [](const auto& entry) { return entry.pending(); };
  const bool pending = std::ranges::any_of(report.pfs, isPending) ||
                       std::ranges::any_of(report.softRoce, isPending) ||
                       (report.memoryCheck && report.memoryCheck->differs());
  return pending ? ExitCode::pending : ExitCode::done;
}

}  // namespace

void addHost(CLI::App& app, Runner& runner) {
  auto* host = app.add_subcommand(
      "host", "Manage the settings of the PFs themselves and SoftRoCE links from host.yaml");
  host->require_subcommand(1);
  host->add_subcommand("show",
                       "Show the wanted (host.yaml) and current settings of each PF and SoftRoCE\n"
                       "link")
      ->callback([&runner] { runner = show; });
  const auto options = std::make_shared<HostApplyOptions>();
  auto* command = host->add_subcommand(
      "apply",
      "Apply the settings in host.yaml to its PFs, without removing a VF that is in use.\n"
      "Create the SoftRoCE links in `soft-roce:` (software RDMA for testing on hosts without\n"
      "an HCA; deprecated in RHEL 10), and remove those that vfpass created and host.yaml no\n"
      "longer lists.");
  addSavedPlanOptions(*command, options->dryRun, options->out, options->plan);
  command->add_flag(
      "--allow-disruption", options->allowDisruption,
      "Also change a PF that is part of a bond or has addresses, and take links down");
  command->add_option("--only", options->only, "Apply one part of host.yaml: `pfs` or `soft-roce`")
      ->type_name("PART")
      ->check(CLI::IsMember({"pfs", "soft-roce"}));
  command->callback([&runner, options] {
    runner = [options](Session& session) { return applyHost(session, *options); };
  });
  addHostGuids(*host, runner);
}

namespace {

struct GuidOptions {
  std::string format = "table";
  std::string partition;         ///< P_Key; may be empty
  std::vector<std::string> vms;  ///< empty: all
};

std::string nameOfHost() {
  std::array<char, 256> name{};  // the kernel allows 64
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "";
}

// Without the bit for full membership. The rest must not be zero, for which OpenSM invents a P_Key.
std::optional<std::uint16_t> partitionOf(const std::string& text) {
  if (text.empty()) {
    return std::nullopt;
  }
  const bool hexadecimal = text.starts_with("0x");
  const auto number = parseNumber(hexadecimal ? text.substr(2) : text, hexadecimal ? 16 : 10);
  if (!number || *number > 0xffff || (*number & 0x7fffU) == 0) {
    throw Error("--p-key " + printable(text) + " is not a P_Key of a partition",
                "give a number from 1 to 0x7fff, or with the bit of full members to 0xffff",
                ExitCode::badInput);
  }
  return static_cast<std::uint16_t>(*number & 0x7fffU);
}

bool isOf(const Lease& lease, const std::string& vm) {
  const auto uuid = parseUuid(vm);
  return lease.domainName == vm || (uuid && lease.domain == *uuid);
}

// Names are those of the attach, since libvirt is not asked.
void keepVms(std::vector<Lease>& leases, const std::vector<std::string>& vms) {
  for (const auto& vm : vms) {
    if (std::ranges::none_of(leases, [&](const auto& lease) { return isOf(lease, vm); })) {
      throw Error("no lease of a VM with the name or UUID " + printable(vm),
                  "run `vfpass host guids` to list all leases with GUIDs", ExitCode::badInput);
    }
  }
  std::erase_if(leases, [&](const Lease& lease) {
    return !vms.empty() &&
           std::ranges::none_of(vms, [&](const auto& vm) { return isOf(lease, vm); });
  });
}

bool hasPortGuid(const Lease& lease) {
  const auto guid = acceptedSettings(lease).portGuid;
  return guid && guid->isUsable();
}

std::vector<Lease> leasesWithGuids(Session& session, const std::vector<std::string>& vms) {
  std::vector<Lease> leases = session.readLeases();
  keepVms(leases, vms);
  std::erase_if(leases, [](const Lease& lease) { return !isInfinibandVf(lease); });
  for (const Lease& lease : leases) {
    if (!hasPortGuid(lease)) {
      session.warn(printable(lease.domainName) + " " + printable(lease.entry) + ": VF " +
                   toString(lease.device) +
                   " is not listed: its lease has no port GUID, or the driver refused it");
    }
  }
  std::erase_if(leases, [](const Lease& lease) { return !hasPortGuid(lease); });
  std::ranges::sort(leases, {}, [](const Lease& lease) {
    return std::tuple(lease.domainName, lease.domain, lease.entry);
  });
  return leases;
}

report::GuidFormat formatOf(const GuidOptions& options) {
  return options.format == "opensm" ? report::GuidFormat::opensm
         : options.format == "csv"  ? report::GuidFormat::csv
                                    : report::GuidFormat::table;
}

ExitCode listGuids(Session& session, const GuidOptions& options) {
  if (session.options().sysroot != "/") {
    throw Error("host guids: not possible on a captured tree (--sysroot)",
                "omit --sysroot; --state-dir reads the leases of another directory",
                ExitCode::badInput);
  }
  const auto format = formatOf(options);
  report::GuidList list{nameOfHost(), {}, partitionOf(options.partition)};
  if (format == report::GuidFormat::opensm && !list.partition) {
    throw Error("--format opensm needs the partition, which leases do not have",
                "add its P_Key, such as `--p-key 0x8001`", ExitCode::badInput);
  }
  list.leases = leasesWithGuids(session, options.vms);
  report::writeGuids(session.out(), list, format, session.style());
  if (list.leases.empty() && (format != report::GuidFormat::table || session.style().json)) {
    session.note("no leased InfiniBand VF has a port GUID");
  }
  return ExitCode::done;
}

}  // namespace

void addHostGuids(CLI::App& host, Runner& runner) {
  auto* command = host.add_subcommand(
      "guids",
      "List the GUIDs of the leased InfiniBand VFs, also of VMs that are shut off, for the\n"
      "administrator of the subnet manager. Reads only the leases.");
  const auto options = std::make_shared<GuidOptions>();
  command
      ->add_option("--format", options->format,
                   "Output format: table, opensm (rules for OpenSM's partitions.conf), csv")
      ->type_name("FORMAT")
      ->check(CLI::IsMember({"table", "opensm", "csv"}))
      ->capture_default_str();
  command
      ->add_option("--p-key", options->partition,
                   "Partition of which the rules of opensm make these VFs full members;\n"
                   "csv and --json repeat it")
      ->type_name("KEY");
  command->add_option("--vm", options->vms, "Only the VFs of this VM (repeatable): name or UUID")
      ->type_name("VM")
      ->allow_extra_args(false);
  command->callback([&runner, options] {
    runner = [options](Session& session) { return listGuids(session, *options); };
  });
}

}  // namespace vfpass::commands
