#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <exception>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "channel/channel.hpp"
#include "program/probe_commands.hpp"
#include "transfer/side.hpp"
#include "transfer/transfer_settings.hpp"
#include "transfer/transfers.hpp"
#include "vfpass/base/default_deadlines.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/error.hpp"

namespace vfpass::probe {
namespace {

/// Options that the commands that move data have in common.
struct RunOptions {
  PortChoice port;
  GpuChoice gpu = 0;
  int gidIndex = -1;
  int deadlineSeconds = deadlines::probeRun.count();
  std::string token;
  std::string ipAddress;
  std::string operation = "write";
  std::string preset;
  std::string initiatorMemory = "host";
  std::string targetMemory = "host";
  std::string fault = "none";
  bool unchecked = false;
  bool besideHost = false;
  std::optional<std::uint64_t> iterations;  ///< nullopt: as in the preset or Settings
  Settings settings;
};

/// `quick: writes and ...; sizes: ...`
std::string presetHelp() {
  std::string help;
  for (const Preset& preset : presets()) {
    help +=
        (help.empty() ? "" : "; ") + std::string(preset.name) + ": " + std::string(preset.purpose);
  }
  return help;
}

/// `--device` and other options about the port and the timeout, for both sides.
void addPortOptions(CLI::App& command, RunOptions& options) {
  command.add_option("--device", options.port.device, "RDMA device, such as mlx5_0")->required();
  command.add_option("--ib-port", options.port.port, "Port of the device")
      ->check(CLI::Range(1, 254))
      ->capture_default_str();
  command
      .add_option("--gid-index", options.gidIndex,
                  "GID index, instead of the one that inventory recommends")
      ->check(CLI::Range(0, 255));
  command.add_option("--ip-address", options.ipAddress,
                     "Own IP address for --rdma-cm, instead of those of the port's interface");
  addGpuOption(command, options.gpu);
  command
      .add_option("--deadline", options.deadlineSeconds, "Timeout for the whole run, in seconds")
      ->check(CLI::Range(1, 86400))
      ->capture_default_str();
  command.add_option("--token", options.token, "Token that both sides of a measurement must share");
}

/// Options about what is measured, for the initiator.
void addSettingsOptions(CLI::App& command, RunOptions& options) {
  Settings& settings = options.settings;
  // The operation, and the messages' size and number.
  command.add_option("--operation", options.operation)
      ->check(CLI::IsMember({"write", "read", "send"}))
      ->capture_default_str();
  command.add_flag("--latency", settings.latency,
                   "Measure the latency of one read at a time (send always does)");
  command.add_option("--preset", options.preset, presetHelp());
  command.add_option("--bytes", settings.bytes, "Size of one message, such as 64K")
      ->transform(CLI::AsSizeValue(false))
      ->capture_default_str();
  command
      .add_option_function<std::uint64_t>(
          "--iterations", [&](std::uint64_t count) { options.iterations = count; },
          "Number of timed messages, instead of a preset's own; minimum for bandwidth\n"
          "runs, see --minimum-time")
      ->default_str(std::to_string(settings.iterations));
  // How long a bandwidth is measured.
  command
      .add_option("--minimum-time", settings.minimumMilliseconds,
                  "Minimum duration of a bandwidth run, in milliseconds (0: exactly --iterations "
                  "messages)")
      ->check(CLI::Range(0, 60000))
      ->capture_default_str();
  command
      .add_option("--sustain", settings.sustainMilliseconds,
                  "Then transfer for this time without checks in between, in milliseconds")
      ->check(CLI::Range(0, 600000))
      ->capture_default_str();
  // The send queue, and the messages in memory.
  command.add_option("--depth", settings.depth, "Depth of the send queue")->capture_default_str();
  command.add_option("--moderation", settings.moderation,
                     "Messages for each completion (0: 100 up to 8 KiB, else 1)");
  command.add_option("--seed", settings.seed)->capture_default_str();
  command
      .add_option("--memory-limit", settings.memoryLimit, "Maximum size of one ring, such as 64M")
      ->transform(CLI::AsSizeValue(false))
      ->capture_default_str();
  command.add_option("--alignment", settings.alignment,
                     "Alignment of messages: bytes past a cache line");
  // Where the memory is, and how the device accesses it.
  const auto memory = CLI::IsMember({"host", "gpu"});
  command.add_option("--initiator-memory", options.initiatorMemory)->check(memory);
  command.add_option("--target-memory", options.targetMemory)->check(memory);
  command.add_flag("--beside-host", options.besideHost,
                   "Before each run with GPU memory, do the same with host memory");
  command.add_flag("--relaxed-ordering", settings.relaxedOrdering);
  command.add_flag("--rdma-cm", settings.rdmaCm,
                   "Connect the queue pairs by rdma_cm, with the ports' IP addresses");
  // Whether the checks run, and what they have to find.
  command.add_flag("--unchecked", options.unchecked,
                   "Skip the checks to show what they cost; proves nothing");
  command.add_option("--inject", options.fault, "Fault to inject")
      ->check(
          CLI::IsMember({"none", "flip", "lost", "stale", "misplaced", "truncate", "duplicate"}));
  command.add_option("--inject-message", settings.injection.message,
                     "Number of the message with the fault");
}

/// GPU figures are meaningful only next to host figures of the same run.
std::vector<Settings> withHostRuns(const std::vector<Settings>& runs) {
  std::vector<Settings> all;
  for (const Settings& run : runs) {
    if (run.initiatorOnGpu || run.targetOnGpu) {
      all.push_back(run);
      all.back().initiatorOnGpu = false;
      all.back().targetOnGpu = false;
    }
    all.push_back(run);
  }
  return all;
}

/// The run that the options describe, or the preset's runs.
std::vector<Settings> chosenRuns(const RunOptions& options) {
  if (options.preset.empty()) {
    Settings run = options.settings;
    run.operation = options.operation == "read"   ? Operation::read
                    : options.operation == "send" ? Operation::send
                                                  : Operation::write;
    return {run};
  }
  const auto known = presets();
  const auto found = std::ranges::find(known, options.preset, &Preset::name);
  if (found == known.end()) {
    throw Error("unknown preset " + options.preset, "use quick, sizes, latency or published",
                ExitCode::badInput);
  }
  return found->runs;
}

/// Throws Error for values that contradict each other.
std::vector<Settings> settingsOf(const RunOptions& options) {
  std::vector<Settings> runs = chosenRuns(options);
  for (Settings& run : runs) {
    run.iterations = options.iterations.value_or(run.iterations);
    run.initiatorOnGpu = options.initiatorMemory == "gpu";
    run.targetOnGpu = options.targetMemory == "gpu";
    run.relaxedOrdering = options.settings.relaxedOrdering;
    run.rdmaCm = options.settings.rdmaCm;
    run.check = !options.unchecked;
    run.seed = options.settings.seed;
    run.injection = {parseFault(options.fault).value_or(Fault::none),
                     options.settings.injection.message};
    // A run that shows a fault measures nothing.
    const bool faultless = run.injection.fault == Fault::none;
    run.minimumMilliseconds = faultless ? options.settings.minimumMilliseconds : 0;
    run.sustainMilliseconds = faultless ? options.settings.sustainMilliseconds : 0;
    validate(run);
  }
  return options.besideHost ? withHostRuns(runs) : runs;
}

Resources resourcesOf(const RunOptions& options) {
  Resources resources{std::make_shared<const VerbsLibrary>(), options.port, options.gpu,
                      options.ipAddress};
  if (options.gidIndex >= 0) {
    resources.port.gidIndex = options.gidIndex;
  }
  return resources;
}

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

/// Runs both sides in this process over a socket pair, the target in its own thread, with the same
/// code as between two machines. Returns the initiator's report.
nlohmann::json loopback(const std::vector<Settings>& runs, const Resources& resources,
                        const Deadline& deadline) {
  std::array<int, 2> sockets{-1, -1};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets.data()) != 0) {
    throw Error("cannot create a socket pair: " + errnoText(errno));
  }
  Channel near(socketTransport(FileDescriptor(sockets[0])), deadline);
  std::optional<Channel> far(std::in_place, socketTransport(FileDescriptor(sockets[1])), deadline);
  // The target reports its errors over the channel, and the initiator passes them on.
  std::jthread target([&far, &resources] {
    try {
      serve(*far, resources, "", UINT64_MAX);
    } catch (const std::exception&) {
      far.reset();
    }
  });
  return measureAll(near, runs, resources, "");
}

int runLoopback(const RunOptions& options) {
  const auto runs = settingsOf(options);
  return writeVerdict(loopback(runs, resourcesOf(options), deadlineOf(options)));
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
  return writeVerdict(measureAll(channel, runs, resources, options.run.token));
}

int runListen(const PairOptions& options) {
  const Resources resources = resourcesOf(options.run);
  const Deadline deadline = deadlineOf(options.run);
  Channel channel(options.folder.empty()
                      ? socketTransport(acceptOne(options.address, options.port, deadline))
                      : folderTransport(options.folder),
                  deadline);
  return writeVerdict(serve(channel, resources, options.run.token, options.memoryLimit));
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
