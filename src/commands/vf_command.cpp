#include <unistd.h>

#include <algorithm>

#include "commands.hpp"
#include "survey_domains.hpp"
#include "vfpass/base/default_deadlines.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/host/find_holders.hpp"
#include "vfpass/inventory/read_inventory.hpp"
#include "vfpass/plan/owner_objections.hpp"
#include "vfpass/report/command_reports.hpp"

namespace vfpass::commands {
namespace {

bool hasName(const PhysicalFunction& pf, const std::string& name) {
  const auto address = parsePciAddress(name);
  return (address && pf.address == *address) || pf.netdev() == name || pf.rdmaDevice() == name ||
         pf.serial == name;
}

// A PF can be given by its PCI address, netdev or RDMA device, and all PFs of a card by its serial
// number.
void keepOnly(Inventory& inventory, const std::string& name) {
  std::vector<std::string> names;
  for (const auto& pf : inventory.pfs) {
    names.insert(names.end(), {toString(pf.address), pf.netdev(), pf.rdmaDevice(), pf.serial});
  }
  std::erase(names, "");
  std::erase_if(inventory.pfs, [&](const PhysicalFunction& pf) { return !hasName(pf, name); });
  if (inventory.pfs.empty()) {
    const auto near = closestSpelling(name, names);
    throw Error(
        "no PF " + printable(name) + " on this host",
        near ? "did you mean `" + printable(*near) + "`?" : "run `vfpass pf list` to list the PFs",
        ExitCode::badInput);
  }
}

// libvirt may be of another host, or not run: then the VFs are listed without these users. A
// captured tree has its own libvirt only if the user names one.
report::DefinedUsers definedUsers(Session& session, const Inventory& inventory,
                                  const std::vector<Lease>& leases) {
  const bool live = session.options().sysroot == "/";
  const bool anyVf = std::ranges::any_of(
      inventory.pfs, [](const PhysicalFunction& pf) { return !pf.vfs.empty(); });
  if (!anyVf || (!live && session.options().connect.empty())) {
    return std::nullopt;
  }
  const std::string noUsers = "cannot list the domains that use VFs: ";
  try {
    session.limitLibvirt(deadlines::libvirtAnswer);
    const DomainSurvey survey = surveyDomains(session);
    std::vector<DeviceUser> users;
    for (const PhysicalFunction& pf : inventory.pfs) {
      std::ranges::move(plan::definedUsers(pf, survey.summaries, survey.pools, leases),
                        std::back_inserter(users));
    }
    return users;
  } catch (const NoAnswer& error) {
    session.warn(noUsers + withRemedy(error));
    return std::nullopt;
  } catch (const Error& error) {
    // libvirt refuses ordinary users on most hosts.
    if (::geteuid() == 0 || !session.options().connect.empty()) {
      session.warn(noUsers + withRemedy(error));
    } else {
      session.verbose(noUsers + error.what());
    }
    return std::nullopt;
  }
}

// A VF on a driver of the host has a netdev; where ours has none, a container may have it. Only
// then are processes and namespaces searched.
void addNetdevsElsewhere(const Session& session, const Inventory& inventory,
                         report::DefinedUsers& users) {
  std::vector<PciAddress> missing;
  for (const PhysicalFunction& pf : inventory.pfs) {
    for (const VirtualFunction& vf : pf.vfs) {
      if (vf.netdevs.empty() && vf.driver == pf.driver && !vf.driver.empty()) {
        missing.push_back(vf.address);
      }
    }
  }
  // A document whose other users are unknown says so.
  if (missing.empty() || (!users && session.style().json)) {
    return;
  }
  for (const auto& [vf, netdev, place] :
       host::findNetdevsElsewhere(session.root(), missing, deadlines::netlink)) {
    users = users ? users : std::vector<DeviceUser>();
    users->push_back({vf, DeviceUser::Kind::elsewhere, netdev + " in " + place});
  }
}

ExitCode listVfs(Session& session, const std::string& pf) {
  // The table shows neither users nor driver overrides of the VFs.
  // Neither do they have serial numbers, which only --pf can name.
  const auto serials = pf.empty() ? host::Serials::skip : host::Serials::read;
  Inventory inventory = session.style().json ? inventory::readInventory(session.root(), {}, serials)
                                             : inventory::readVfList(session.root(), serials);
  if (!pf.empty()) {
    keepOnly(inventory, pf);
  }
  // This host's leases do not apply to a captured tree.
  const bool live = session.options().sysroot == "/";
  const auto leases = live ? session.readLeases() : std::vector<Lease>();
  inventory.quarantined = session.quarantined();
  auto users = definedUsers(session, inventory, leases);
  addNetdevsElsewhere(session, inventory, users);
  report::writeVfs(session.pagedOut(), inventory, leases, users, session.style());
  return ExitCode::done;
}

}  // namespace

void addVf(CLI::App& app, Runner& runner) {
  auto* vf = app.add_subcommand("vf", "Show the virtual functions of this host");
  vf->require_subcommand(1);
  struct Options {
    std::string pf;
    std::string watch;
  };
  const auto options = std::make_shared<Options>();
  auto* list = vf->add_subcommand("list", "List the VFs with driver, attributes and lease");
  list->add_option(
          "--pf", options->pf,
          "Only the VFs of this PF: netdev, PCI address, RDMA device, or serial number of the card")
      ->type_name("PF");
  addWatch(*list, options->watch);
  list->callback([&runner, options] {
    runner = [options](Session& session) {
      return showOrWatch(session, options->watch,
                         [options](Session& each) { return listVfs(each, options->pf); });
    };
  });
}

}  // namespace vfpass::commands
