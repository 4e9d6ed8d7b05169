#include <ostream>

#include "commands.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/report/command_reports.hpp"

namespace vfpass::commands {
namespace {

ExitCode listQuarantine(Session& session) {
  session.requireThisHost("quarantine list");
  report::writeQuarantine(session.pagedOut(), session.readDatabase().quarantined(),
                          session.style());
  return ExitCode::done;
}

PciAddress requireDevice(const std::string& text) {
  const auto device = parsePciAddress(text);
  if (!device) {
    throw Error(printable(text) + " is not a PCI address",
                "`vfpass quarantine list` shows the addresses, such as 0000:3b:00.2",
                ExitCode::badInput);
  }
  return *device;
}

ExitCode releaseFromQuarantine(Session& session, const std::string& text) {
  session.requireChangesPossible("quarantine release");
  const PciAddress device = requireDevice(text);
  if (!session.database().endQuarantine(device)) {
    throw Error(toString(device) + " is not in quarantine",
                "run `vfpass quarantine list` to list the devices", ExitCode::badInput);
  }
  session.note("released " + toString(device) + ": VMs can have it again");
  if (session.style().json) {
    report::writeQuarantine(session.out(), session.database().quarantined(), session.style());
  }
  return ExitCode::done;
}

}  // namespace

void addQuarantine(CLI::App& app, Runner& runner) {
  auto* quarantine = app.add_subcommand(
      "quarantine",
      "List devices that no VM gets after a failed reset or errors, and release them");
  quarantine->require_subcommand(1);
  auto* list = quarantine->add_subcommand("list", "List the devices, since when, and why");
  list->callback([&runner] { runner = listQuarantine; });
  auto* release = quarantine->add_subcommand(
      "release", "Let VMs have this device again, once you have found the cause");
  const auto device = std::make_shared<std::string>();
  release->add_option("device", *device, "PCI address of the device")
      ->type_name("DEVICE")
      ->required();
  release->callback([&runner, device] {
    runner = [device](Session& session) { return releaseFromQuarantine(session, *device); };
  });
}

}  // namespace vfpass::commands
