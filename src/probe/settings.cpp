#include "settings.hpp"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "json_reader.hpp"
#include "vfpass/error.hpp"

namespace vfpass::probe {
namespace {

constexpr std::array<std::string_view, 3> operationNames{"write", "read", "send"};

constexpr std::uint64_t leastBytes = 2;
constexpr std::uint64_t mostBytes = std::uint64_t{16} << 20U;
constexpr std::uint64_t mostIterations = 100'000'000;
constexpr std::uint32_t mostDepth = 16384;
constexpr std::uint64_t mostMemory = std::uint64_t{64} << 30U;
constexpr std::uint64_t cacheLine = 64;

void require(bool holds, const std::string& what) {
  if (!holds) {
    throw Error(what, "see vfpass-probe loopback --help", ExitCode::badInput);
  }
}

bool suitsSend(Fault fault) {
  return fault == Fault::none || fault == Fault::flip || fault == Fault::stale ||
         fault == Fault::truncate;
}

Settings powerOfTwo(Operation operation, unsigned exponent) {
  constexpr std::uint64_t wholeRun = std::uint64_t{1} << 28U;
  Settings settings;
  settings.operation = operation;
  settings.bytes = std::uint64_t{1} << exponent;
  settings.iterations = std::clamp<std::uint64_t>(wholeRun / settings.bytes, 16, 5000);
  return settings;
}

std::vector<Settings> allSizes() {
  std::vector<Settings> runs;
  for (const Operation operation : {Operation::write, Operation::read}) {
    for (unsigned exponent = 1; exponent <= 24; ++exponent) {
      runs.push_back(powerOfTwo(operation, exponent));
    }
  }
  return runs;
}

Settings latencyOf(Operation operation) {
  Settings settings;
  settings.operation = operation;
  settings.latency = true;
  settings.bytes = 8;
  settings.iterations = 1000;
  return settings;
}

Settings published() {
  Settings settings;
  settings.bytes = 10'000'000;
  settings.iterations = 10'000;
  settings.memoryLimit = std::uint64_t{256} << 20U;
  return settings;
}

}  // namespace

std::string operationName(Operation operation) {
  return std::string(operationNames.at(static_cast<std::size_t>(operation)));
}

std::uint32_t moderationOf(const Settings& settings) {
  constexpr std::uint64_t smallMessage = 8192;
  const std::uint32_t usual = settings.bytes <= smallMessage ? 100 : 1;
  const std::uint32_t wanted = settings.moderation == 0 ? usual : settings.moderation;
  // Half the queue at most, as otherwise it runs dry before anybody hears of a completion.
  return std::clamp<std::uint32_t>(wanted, 1, std::max<std::uint32_t>(1, settings.depth / 2));
}

nlohmann::json toJson(const Settings& settings) {
  return {{"operation", operationName(settings.operation)},
          {"latency", settings.latency},
          {"bytes", settings.bytes},
          {"iterations", settings.iterations},
          {"depth", settings.depth},
          {"moderation", settings.moderation},
          {"seed", settings.seed},
          {"memory_limit", settings.memoryLimit},
          {"alignment", settings.alignment},
          {"check", settings.check},
          {"relaxed_ordering", settings.relaxedOrdering},
          {"initiator_on_gpu", settings.initiatorOnGpu},
          {"target_on_gpu", settings.targetOnGpu},
          {"inject", faultName(settings.injection.fault)},
          {"inject_message", settings.injection.message}};
}

Settings settingsFromJson(const nlohmann::json& json) {
  Settings settings;
  const auto* operation = std::ranges::find(operationNames, textMember(json, "operation"));
  const auto fault = parseFault(textMember(json, "inject"));
  require(operation != operationNames.end() && fault, "there is no such operation or fault");
  settings.operation = static_cast<Operation>(operation - operationNames.begin());
  settings.latency = flagMember(json, "latency");
  settings.bytes = numberMember(json, "bytes", mostBytes);
  settings.iterations = numberMember(json, "iterations", mostIterations);
  settings.depth = static_cast<std::uint32_t>(numberMember(json, "depth", mostDepth));
  settings.moderation = static_cast<std::uint32_t>(numberMember(json, "moderation", mostDepth));
  settings.seed = numberMember(json, "seed");
  settings.memoryLimit = numberMember(json, "memory_limit", mostMemory);
  settings.alignment = numberMember(json, "alignment", cacheLine - 1);
  settings.check = flagMember(json, "check");
  settings.relaxedOrdering = flagMember(json, "relaxed_ordering");
  settings.initiatorOnGpu = flagMember(json, "initiator_on_gpu");
  settings.targetOnGpu = flagMember(json, "target_on_gpu");
  settings.injection = {*fault, numberMember(json, "inject_message", mostIterations)};
  validate(settings);
  return settings;
}

void validate(const Settings& settings) {
  require(settings.bytes >= leastBytes && settings.bytes <= mostBytes,
          "a message has 2 bytes to 16 MiB");
  require(settings.iterations >= 1 && settings.iterations <= mostIterations,
          "there are 1 to 100,000,000 messages");
  require(settings.depth >= 1 && settings.depth <= mostDepth, "a queue has 1 to 16,384 entries");
  require(settings.memoryLimit <= mostMemory, "a ring has at most 64 GiB");
  require(settings.alignment < cacheLine, "alignments are 0 to 63 bytes");
  require(settings.operation != Operation::write || !settings.latency,
          "write latency is not measured: it depends on a processor that polls memory");
  require(settings.operation != Operation::send || suitsSend(settings.injection.fault),
          "a message that is never sent would only stop a send test");
  require(settings.check || settings.injection.fault == Fault::none,
          "without checks no fault can be found");
  const bool movesToNeighbour =
      settings.injection.fault == Fault::misplaced || settings.injection.fault == Fault::duplicate;
  const Ring ring = makeRing(settings.bytes, settings.iterations, settings.memoryLimit, 0);
  require(!movesToNeighbour || ring.slotOf(settings.injection.message) != 0,
          "the message with the fault is the first of a cycle, where the next one would repair it");
  require(
      settings.injection.fault == Fault::none || settings.injection.message < settings.iterations,
      "the message with the fault is never sent");
}

std::vector<Preset> presets() {
  Settings read;
  read.operation = Operation::read;
  read.iterations = 1000;
  return {{"quick",
           "writes and reads of 64 KiB, latency of 8 bytes",
           {Settings{}, read, latencyOf(Operation::read), latencyOf(Operation::send)}},
          {"sizes", "writes and reads of every power of two from 2 bytes to 16 MiB", allSizes()},
          {"latency",
           "read and send latency of 8 bytes",
           {latencyOf(Operation::read), latencyOf(Operation::send)}},
          {"published", "10,000 writes of 10 MB", {published()}}};
}

}  // namespace vfpass::probe
