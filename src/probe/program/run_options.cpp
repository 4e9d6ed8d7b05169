#include "run_options.hpp"

#include <algorithm>

#include "program/gpu_option.hpp"
#include "vfpass/error.hpp"

namespace vfpass::probe {
namespace {

/// `quick: writes and ...; sizes: ...`
std::string presetHelp() {
  std::string help;
  for (const Preset& preset : presets()) {
    help +=
        (help.empty() ? "" : "; ") + std::string(preset.name) + ": " + std::string(preset.purpose);
  }
  return help;
}

}  // namespace

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

void addSettingsOptions(CLI::App& command, RunOptions& options) {
  Settings& settings = options.settings;
  const auto memory = CLI::IsMember({"host", "gpu"});
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
  command.add_option("--initiator-memory", options.initiatorMemory)->check(memory);
  command.add_option("--target-memory", options.targetMemory)->check(memory);
  command.add_flag("--beside-host", options.besideHost,
                   "Before each run with GPU memory, do the same with host memory");
  command.add_flag("--relaxed-ordering", settings.relaxedOrdering);
  command.add_flag("--rdma-cm", settings.rdmaCm,
                   "Connect the queue pairs by rdma_cm, with the ports' IP addresses");
  command.add_flag("--unchecked", options.unchecked,
                   "Skip the checks to show what they cost; proves nothing");
  command.add_option("--inject", options.fault, "Fault to inject")
      ->check(
          CLI::IsMember({"none", "flip", "lost", "stale", "misplaced", "truncate", "duplicate"}));
  command.add_option("--inject-message", settings.injection.message,
                     "Number of the message with the fault");
}

namespace {

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
  std::vector<Settings> runs;
  if (options.preset.empty()) {
    runs.push_back(options.settings);
    runs.front().operation = options.operation == "read"   ? Operation::read
                             : options.operation == "send" ? Operation::send
                                                           : Operation::write;
  } else {
    const auto known = presets();
    const auto found = std::ranges::find(known, options.preset, &Preset::name);
    if (found == known.end()) {
      throw Error("unknown preset " + options.preset, "use quick, sizes, latency or published",
                  ExitCode::badInput);
    }
    runs = found->runs;
  }
  return runs;
}

}  // namespace

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

}  // namespace vfpass::probe
