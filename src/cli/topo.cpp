#include "commands.hpp"
#include "guest_devices.hpp"
#include "host_topology.hpp"
#include "vfpass/report/nccl_topology.hpp"
#include "vfpass/report/topology_report.hpp"

namespace vfpass::cli {
namespace {

struct TopoOptions {
  std::string format = "matrix";
  std::string vm;
};

void writeNccl(Session& session, const TopoOptions& options, const report::TopologyReport& report) {
  if (options.vm.empty()) {
    report::writeNcclTopology(session.out(), report.topology);
  } else {
    report::writeGuestNcclTopology(
        session.out(), report.topology,
        guestDevicesOf(options.vm, report, [](const Lease& lease) { return lease.guest.address; }));
  }
}

ExitCode show(Session& session, const TopoOptions& options) {
  const std::string format = session.style().json ? "json" : options.format;
  if (!options.vm.empty() && format != "nccl") {
    throw Error("--vm says whose NCCL file is meant, and goes with --format nccl only",
                "leave it out, or add --format nccl", ExitCode::badInput);
  }
  const report::TopologyReport report = topologyReport(session, format != "nccl");
  warnOfProblems(session, report.topology);
  if (format == "nccl") {
    writeNccl(session, options, report);
  } else if (format == "json") {
    report::writeTopologyJson(session.out(), report);
  } else if (format == "dot") {
    report::writeTopologyDot(session.out(), report);
  } else if (format == "svg") {
    report::writeTopologySvg(session.out(), report);
  } else if (format == "tree") {
    report::writeTopologyTree(session.out(), report, session.style());
  } else {
    report::writeTopologyMatrix(session.out(), report, session.style());
  }
  return ExitCode::done;
}

}  // namespace

void addTopo(CLI::App& app, Runner& runner) {
  auto* command =
      app.add_subcommand("topo", "how near each GPU is to each PF, and what sits where");
  const auto options = std::make_shared<TopoOptions>();
  command
      ->add_option("--format", options->format,
                   "matrix, tree, svg (a picture), dot, json, nccl (a file for NCCL_TOPO_FILE)")
      ->check(CLI::IsMember({"matrix", "tree", "svg", "dot", "json", "nccl"}))
      ->capture_default_str();
  command->add_option("--vm", options->vm,
                      "with --format nccl: the file for this VM's guest, with its addresses");
  command->callback([&runner, options] {
    runner = [options](Session& session) { return show(session, *options); };
  });
}

}  // namespace vfpass::cli
