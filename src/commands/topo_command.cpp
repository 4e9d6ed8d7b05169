#include <ostream>
#include <sstream>

#include "commands.hpp"
#include "guest_devices.hpp"
#include "host_facts.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/base/write_file.hpp"
#include "vfpass/report/table.hpp"
#include "vfpass/report/topology_report.hpp"
#include "vfpass/report/verify_report.hpp"
#include "vfpass/topology/distance.hpp"
#include "vfpass/topology/guest_topology.hpp"

namespace vfpass::commands {
namespace {

struct TopoOptions {
  std::string format = "matrix";
  bool formatGiven = false;
  std::string vm;
  std::string html;  ///< file; empty: none
};

/// The subject of `topo`: the host, with --vm also the guest.
struct Shown {
  report::TopologyReport host;
  std::string vm;
  GuestMachine machine;                         // empty without --vm, like the members below
  std::vector<commands::LeasedDevice> devices;  // of the VM
  report::TopologyReport guest;

  [[nodiscard]] bool hasGuest() const { return !vm.empty(); }
  [[nodiscard]] std::string inGuest() const { return "in guest " + vm; }
  [[nodiscard]] const report::TopologyReport& subject() const { return hasGuest() ? guest : host; }
};

void addGuest(Session& session, const std::string& vm, Shown& shown) {
  shown.vm = vm;
  shown.devices = commands::guestDevicesOf(vm, shown.host);  // throws for a VM without a lease
  shown.machine = guestMachineOf(session, vm, shown.host.leases);
  shown.guest = {topology::guestTopology(shown.machine, shown.host.topology), {}};
}

void showNccl(Session& session, const Shown& shown) {
  if (shown.hasGuest()) {
    report::writeGuestNcclTopology(session.out(), shown.host.topology,
                                   placedIn(shown.machine, shown.devices, shown.guest.topology));
  } else {
    report::writeNcclTopology(session.out(), shown.host.topology);
  }
}

void writeSvg(std::ostream& out, const Shown& shown) {
  if (shown.hasGuest()) {
    report::writeTopologySvg(out, shown.host, shown.guest, shown.inGuest());
  } else {
    report::writeTopologySvg(out, shown.host);
  }
}

void showTree(Session& session, const Shown& shown) {
  std::ostream& out = session.pagedOut();
  if (shown.hasGuest()) {
    out << "on the host\n";
  }
  report::writeTopologyTree(out, shown.host, session.style());
  if (shown.hasGuest()) {
    out << '\n' << printable(shown.inGuest()) << '\n';
    report::writeTopologyTree(out, shown.guest, session.style());
  }
}

// A single device has no distances, only its addresses.
void writePlaces(std::ostream& out, const Shown& shown, const report::Style& style) {
  report::Table table({"ENTRY", "HOST", "IN THE GUEST"});
  for (const LeasedDevice& device : shown.devices) {
    const auto inGuest = addressInGuest(shown.machine, device.lease);
    table.add({{printable(device.lease.entry)},
               {toString(device.lease.device)},
               {inGuest ? toString(*inGuest) : "not in the domain's XML"}});
  }
  table.write(out, style);
}

void writeMatrix(std::ostream& out, const Shown& shown, const report::Style& style) {
  if (!shown.hasGuest()) {
    return report::writeTopologyMatrix(out, shown.host, style);
  }
  if (shown.devices.size() < 2) {
    return writePlaces(out, shown, style);
  }
  report::writeDeviceMatrix(out, "on the host",
                            topology::hostMatrix(shown.machine, shown.host.topology), style);
  out << '\n';
  report::writeDeviceMatrix(out, shown.inGuest(),
                            topology::guestMatrix(shown.machine, shown.host.topology), style);
}

void writeHtml(Session& session, const Shown& shown, const std::string& file) {
  std::ostringstream svg;
  std::ostringstream words;
  std::ostringstream page;
  writeSvg(svg, shown);
  writeMatrix(words, shown, {});
  report::writeTopologyHtml(
      page, shown.hasGuest() ? "vfpass topo: host and guest " + shown.vm : "vfpass topo: host",
      svg.str(), words.str(), originOf(session, shown.host.topology));
  writeOutputFile(file, page.str());
}

// libpci, which knows the names, costs time.
bool containsModels(const std::string& format, const TopoOptions& options) {
  return format == "tree" || format == "svg" || format == "json" || !options.html.empty();
}

// --json is one document, which is that of `--format json`.
void requireOneFormat(const Session& session, const TopoOptions& options) {
  if (session.style().json && options.formatGiven && options.format != "json") {
    throw Error("topo: --json and --format " + options.format + " exclude each other",
                "omit one of them", ExitCode::badInput);
  }
}

ExitCode show(Session& session, const TopoOptions& options) {
  requireOneFormat(session, options);
  const std::string format = session.style().json ? "json" : options.format;
  Shown shown;
  shown.host = topologyReport(session, containsModels(format, options));
  shown.host.origin = placeAndDay(session);
  warnOfProblems(session, shown.host.topology);
  if (!options.vm.empty()) {
    addGuest(session, options.vm, shown);
  }
  if (!options.html.empty()) {
    writeHtml(session, shown, options.html);
    if (!session.style().json) {
      return ExitCode::done;
    }
  }
  if (format == "nccl") {
    showNccl(session, shown);
  } else if (format == "json") {
    report::writeTopologyJson(session.out(), shown.subject());
  } else if (format == "svg") {
    writeSvg(session.out(), shown);
  } else if (format == "tree") {
    showTree(session, shown);
  } else {
    writeMatrix(session.pagedOut(), shown, session.style());
  }
  return ExitCode::done;
}

}  // namespace

void addTopo(CLI::App& app, Runner& runner) {
  auto* command =
      app.add_subcommand("topo", "Show the distance of each GPU to each PF, and the PCI tree");
  const auto options = std::make_shared<TopoOptions>();
  command
      ->add_option("--format", options->format,
                   "Output format: matrix, tree, svg (picture), json, nccl (for NCCL_TOPO_FILE)")
      ->type_name("FORMAT")
      ->check(CLI::IsMember({"matrix", "tree", "svg", "json", "nccl"}))
      ->capture_default_str();
  command
      ->add_option("--vm", options->vm,
                   "Show this VM's guest: matrix, tree and svg show host and guest, json and nccl\n"
                   "only the guest")
      ->type_name("VM");
  command
      ->add_option("--html", options->html,
                   "Write one HTML page with picture and matrix instead; with --json, the page\n"
                   "and the JSON document")
      ->type_name("FILE")
      ->excludes("--format");
  command->callback([command, &runner, options] {
    options->formatGiven = command->count("--format") > 0;
    runner = [options](Session& session) { return show(session, *options); };
  });
}

}  // namespace vfpass::commands
