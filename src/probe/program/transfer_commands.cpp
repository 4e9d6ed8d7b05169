#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>

#include "channel/channel.hpp"
#include "channel/tcp.hpp"
#include "output.hpp"
#include "program/probe_commands.hpp"
#include "run_options.hpp"
#include "transfer/loopback.hpp"
#include "transfer/transfer_session.hpp"
#include "vfpass/error.hpp"

namespace vfpass::probe {
namespace {

/// Options of connect and listen.
struct PairOptions {
  RunOptions run;
  std::string address;
  std::string port = "18515";
  std::string folder;  ///< instead of TCP
  std::uint64_t memoryLimit = std::uint64_t{1} << 30U;
};

constexpr const char* folderHelp =
    "Directory to use instead of TCP: its files out.N have to be copied to the other side's in.N";

Deadline deadlineOf(const RunOptions& options) {
  return Deadline(std::chrono::seconds(options.deadlineSeconds));
}

int finishWith(const nlohmann::json& report) {
  writeDocument(report);
  return report.at("passed").get<bool>() ? 0 : static_cast<int>(ExitCode::unproven);
}

int runLoopback(const RunOptions& options) {
  const auto runs = settingsOf(options);
  return finishWith(loopback(runs, resourcesOf(options), deadlineOf(options)));
}

int runConnect(const PairOptions& options) {
  if (options.address.empty() == options.folder.empty()) {
    throw Error("give either an ADDRESS or a --folder", "see vfpass-probe connect --help",
                ExitCode::badInput);
  }
  const auto runs = settingsOf(options.run);
  const Resources resources = resourcesOf(options.run);
  const Deadline deadline = deadlineOf(options.run);
  Channel channel(options.folder.empty()
                      ? socketTransport(connectTo(options.address, options.port, deadline))
                      : folderTransport(options.folder),
                  deadline);
  return finishWith(measureAll(channel, runs, resources, options.run.token));
}

int runListen(const PairOptions& options) {
  const Resources resources = resourcesOf(options.run);
  const Deadline deadline = deadlineOf(options.run);
  Channel channel(options.folder.empty()
                      ? socketTransport(acceptOne(options.address, options.port, deadline))
                      : folderTransport(options.folder),
                  deadline);
  return finishWith(serve(channel, resources, options.run.token, options.memoryLimit));
}

}  // namespace

void addLoopback(CLI::App& program, Action& chosen) {
  CLI::App* command = program.add_subcommand(
      "loopback", "Move data between two queue pairs on one port and check it");
  auto options = std::make_shared<RunOptions>();
  addPortOptions(*command, *options);
  addSettingsOptions(*command, *options);
  command->callback([&chosen, options] { chosen = [options] { return runLoopback(*options); }; });
}

void addConnect(CLI::App& program, Action& chosen) {
  CLI::App* command = program.add_subcommand("connect", "Measure with another probe that listens");
  auto options = std::make_shared<PairOptions>();
  command->add_option("ADDRESS", options->address, "Address on which the other probe listens");
  command->add_option("--port", options->port, "TCP port")->capture_default_str();
  command->add_option("--folder", options->folder, folderHelp);
  addPortOptions(*command, options->run);
  addSettingsOptions(*command, options->run);
  command->callback([&chosen, options] { chosen = [options] { return runConnect(*options); }; });
}

void addListen(CLI::App& program, Action& chosen) {
  CLI::App* command =
      program.add_subcommand("listen", "Listen for one connecting probe and be its target");
  auto options = std::make_shared<PairOptions>();
  command->add_option("--address", options->address,
                      "Address to listen on (default: every address)");
  command->add_option("--port", options->port, "TCP port")->capture_default_str();
  command->add_option("--folder", options->folder, folderHelp);
  command
      ->add_option("--memory-limit", options->memoryLimit,
                   "Maximum memory that the other side may request")
      ->transform(CLI::AsSizeValue(false))
      ->capture_default_str();
  addPortOptions(*command, options->run);
  command->callback([&chosen, options] { chosen = [options] { return runListen(*options); }; });
}

}  // namespace vfpass::probe
