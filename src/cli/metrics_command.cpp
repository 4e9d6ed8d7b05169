#include <ostream>

#include "collect_metrics.hpp"
#include "commands.hpp"
#include "vfpass/session/output_file.hpp"

namespace vfpass::cli {
namespace {

ExitCode writeMetrics(Session& session, const std::filesystem::path& output) {
  const std::string text = metrics::render(collectMetrics(session));
  if (output.empty()) {
    session.out() << text;
  } else {
    session::writeOutputFile(output, text);
  }
  return ExitCode::done;
}

}  // namespace

void addMetrics(CLI::App& app, Runner& runner) {
  auto* command = app.add_subcommand(
      "metrics",
      "Print metrics of VFs, leases, drift, doctor and verifications for Prometheus, in a\n"
      "format that node_exporter's textfile collector reads (--json is ignored)");
  const auto output = std::make_shared<std::filesystem::path>();
  command
      ->add_option("--output", *output,
                   "Replace this file in one step instead of printing; node_exporter reads\n"
                   "files with the suffix .prom")
      ->type_name("FILE");
  command->callback([&runner, output] {
    runner = [output](Session& session) { return writeMetrics(session, *output); };
  });
}

}  // namespace vfpass::cli
