#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>

#include "channel.hpp"
#include "commands.hpp"
#include "loopback.hpp"
#include "output.hpp"
#include "run_options.hpp"
#include "session.hpp"
#include "tcp.hpp"
#include "vfpass/error.hpp"

namespace vfpass::probe {
namespace {

/// Where the two sides meet.
struct Meeting {
  RunOptions run;
  std::string address;
  std::string port = "18515";
  std::string folder;  ///< instead of TCP
  std::uint64_t memoryLimit = std::uint64_t{1} << 30U;
};

constexpr const char* folderHelp =
    "instead of TCP: out.N of this folder become in.N of the other side's, by whoever copies them";

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

int runConnect(const Meeting& meeting) {
  if (meeting.address.empty() == meeting.folder.empty()) {
    throw Error("there is one way to the other side: an ADDRESS or a --folder",
                "see vfpass-probe connect --help", ExitCode::badInput);
  }
  const auto runs = settingsOf(meeting.run);
  const Resources resources = resourcesOf(meeting.run);
  const Deadline deadline = deadlineOf(meeting.run);
  Channel channel(meeting.folder.empty()
                      ? socketTransport(connectTo(meeting.address, meeting.port, deadline))
                      : folderTransport(meeting.folder),
                  deadline);
  return finishWith(measureAll(channel, runs, resources, meeting.run.token));
}

int runListen(const Meeting& meeting) {
  const Resources resources = resourcesOf(meeting.run);
  const Deadline deadline = deadlineOf(meeting.run);
  Channel channel(meeting.folder.empty()
                      ? socketTransport(acceptOne(meeting.address, meeting.port, deadline))
                      : folderTransport(meeting.folder),
                  deadline);
  return finishWith(serve(channel, resources, meeting.run.token, meeting.memoryLimit));
}

}  // namespace

void addLoopback(CLI::App& program, Action& chosen) {
  CLI::App* command = program.add_subcommand(
      "loopback", "move data between two queue pairs on one port, and check it");
  auto options = std::make_shared<RunOptions>();
  addPortOptions(*command, *options);
  addSettingsOptions(*command, *options);
  command->callback([&chosen, options] { chosen = [options] { return runLoopback(*options); }; });
}

void addConnect(CLI::App& program, Action& chosen) {
  CLI::App* command =
      program.add_subcommand("connect", "the same with a probe that listens elsewhere");
  auto meeting = std::make_shared<Meeting>();
  command->add_option("ADDRESS", meeting->address, "where the other one listens");
  command->add_option("--port", meeting->port, "TCP port")->capture_default_str();
  command->add_option("--folder", meeting->folder, folderHelp);
  addPortOptions(*command, meeting->run);
  addSettingsOptions(*command, meeting->run);
  command->callback([&chosen, meeting] { chosen = [meeting] { return runConnect(*meeting); }; });
}

void addListen(CLI::App& program, Action& chosen) {
  CLI::App* command = program.add_subcommand("listen", "be the target of one probe's connect");
  auto meeting = std::make_shared<Meeting>();
  command->add_option("--address", meeting->address, "to listen on (every one)");
  command->add_option("--port", meeting->port, "TCP port")->capture_default_str();
  command->add_option("--folder", meeting->folder, folderHelp);
  command->add_option("--memory-limit", meeting->memoryLimit, "for what the other side asks")
      ->transform(CLI::AsSizeValue(false))
      ->capture_default_str();
  addPortOptions(*command, meeting->run);
  command->callback([&chosen, meeting] { chosen = [meeting] { return runListen(*meeting); }; });
}

}  // namespace vfpass::probe
