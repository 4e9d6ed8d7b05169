#include "commands.hpp"
#include "host_facts.hpp"
#include "vfpass/inventory/read_inventory.hpp"
#include "vfpass/report/command_reports.hpp"

namespace vfpass::commands {
namespace {

ExitCode listPfs(Session& session) {
  Inventory inventory = inventory::readPfList(session.root());
  commands::nameModels(session, inventory);
  report::writePfs(session.pagedOut(), inventory,
                   inventory::readOtherNics(session.root(), inventory), session.style());
  return ExitCode::done;
}

}  // namespace

void addPf(CLI::App& app, Runner& runner) {
  auto* pf = app.add_subcommand("pf", "Show the physical functions of this host");
  pf->require_subcommand(1);
  pf->add_subcommand("list", "List the SR-IOV capable NICs, and why others have no VFs")
      ->callback([&runner] { runner = listPfs; });
}

}  // namespace vfpass::commands
