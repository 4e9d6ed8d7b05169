#include "transfer/transfer_settings.hpp"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "vfpass/base/json_reader.hpp"
#include "vfpass/error.hpp"

namespace vfpass::probe {
namespace {

constexpr std::array<std::string_view, 3> operationNames{"write", "read", "send"};

constexpr std::uint64_t minBytes = 2;
constexpr std::uint64_t mostBytes = std::uint64_t{16} << 20U;
constexpr std::uint64_t maxIterations = 100'000'000;
constexpr std::uint32_t maxMilliseconds = 60'000;
constexpr std::uint32_t maxSustain = 600'000;
constexpr std::uint32_t maxDepth = 16384;
constexpr std::uint64_t maxMemory = std::uint64_t{64} << 30U;
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
  // At most half the queue, as otherwise it runs empty before a completion arrives.
  return std::clamp<std::uint32_t>(wanted, 1, std::max<std::uint32_t>(1, settings.depth / 2));
}

nlohmann::json toJson(const Settings& settings) {
  return {{"operation", operationName(settings.operation)},
          {"latency", settings.latency},
          {"bytes", settings.bytes},
          {"iterations", settings.iterations},
          {"minimum_milliseconds", settings.minimumMilliseconds},
          {"sustain_milliseconds", settings.sustainMilliseconds},
          {"depth", settings.depth},
          {"moderation", settings.moderation},
          {"seed", settings.seed},
          {"memory_limit", settings.memoryLimit},
          {"alignment", settings.alignment},
          {"check", settings.check},
          {"relaxed_ordering", settings.relaxedOrdering},
          {"rdma_cm", settings.rdmaCm},
          {"initiator_on_gpu", settings.initiatorOnGpu},
          {"target_on_gpu", settings.targetOnGpu},
          {"inject", faultName(settings.injection.fault)},
          {"inject_message", settings.injection.message}};
}

Settings settingsFromJson(const JsonReader& json) {
  Settings settings;
  const auto* operation = std::ranges::find(operationNames, json["operation"].requireText());
  const auto fault = parseFault(json["inject"].requireText());
  require(operation != operationNames.end() && fault, "unknown operation or fault");
  settings.operation = static_cast<Operation>(operation - operationNames.begin());
  settings.latency = json["latency"].requireFlag();
  settings.bytes = json["bytes"].requireNumber(mostBytes);
  settings.iterations = json["iterations"].requireNumber(maxIterations);
  settings.minimumMilliseconds =
      json["minimum_milliseconds"].requireNumber<std::uint32_t>(maxMilliseconds);
  settings.sustainMilliseconds =
      json["sustain_milliseconds"].requireNumber<std::uint32_t>(maxSustain);
  settings.depth = json["depth"].requireNumber<std::uint32_t>(maxDepth);
  settings.moderation = json["moderation"].requireNumber<std::uint32_t>(maxDepth);
  settings.seed = json["seed"].requireNumber();
  settings.memoryLimit = json["memory_limit"].requireNumber(maxMemory);
  settings.alignment = json["alignment"].requireNumber(cacheLine - 1);
  settings.check = json["check"].requireFlag();
  settings.relaxedOrdering = json["relaxed_ordering"].requireFlag();
  settings.rdmaCm = json["rdma_cm"].requireFlag();
  settings.initiatorOnGpu = json["initiator_on_gpu"].requireFlag();
  settings.targetOnGpu = json["target_on_gpu"].requireFlag();
  settings.injection = {*fault, json["inject_message"].requireNumber(maxIterations)};
  validate(settings);
  return settings;
}

void validate(const Settings& settings) {
  require(settings.bytes >= minBytes && settings.bytes <= mostBytes,
          "the message size must be 2 bytes to 16 MiB");
  require(settings.iterations >= 1 && settings.iterations <= maxIterations,
          "the number of messages must be 1 to 100,000,000");
  require(settings.minimumMilliseconds <= maxMilliseconds,
          "the minimum time must be at most 60 seconds");
  require(settings.sustainMilliseconds <= maxSustain,
          "the time of sustained transfers must be at most 600 seconds");
  require(settings.sustainMilliseconds == 0 ||
              (settings.operation != Operation::send && !settings.latency),
          "only writes and reads can be sustained");
  require(settings.depth >= 1 && settings.depth <= maxDepth, "the queue depth must be 1 to 16,384");
  require(settings.memoryLimit <= maxMemory, "the memory limit must be at most 64 GiB");
  require(settings.alignment < cacheLine, "the alignment must be 0 to 63 bytes");
  require(settings.operation != Operation::write || !settings.latency,
          "cannot measure write latency: it depends on a processor that polls memory");
  require(settings.operation != Operation::send || suitsSend(settings.injection.fault),
          "a send test supports only the faults flip, stale and truncate");
  require(settings.check || settings.injection.fault == Fault::none,
          "cannot find faults without checks");
  const bool movesToNeighbour =
      settings.injection.fault == Fault::misplaced || settings.injection.fault == Fault::duplicate;
  const Ring ring = makeRing(settings.bytes, settings.iterations, settings.memoryLimit, 0);
  require(
      !movesToNeighbour || ring.slotOf(settings.injection.message) != 0,
      "the message with the fault is the first of a cycle, where the next message would repair it");
  require(
      settings.injection.fault == Fault::none || settings.injection.message < settings.iterations,
      "the message with the fault is beyond the last message");
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
