#include "vfpass/host/fabric_manager.hpp"

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <set>
#include <utility>

#include "vfpass/base/json_reader.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/error.hpp"
#include "vfpass/host/program_output.hpp"

namespace vfpass::host {
namespace {

// Where administrators install it: NVIDIA publishes only its source. A script in /usr/local comes
// first, so that it can stand in for a client that cannot reach the fabric manager.
constexpr std::array fmpmPlaces{"usr/local/sbin/fmpm", "usr/local/bin/fmpm", "usr/sbin/fmpm",
                                "usr/bin/fmpm"};

// The fabric manager has at most 64 partitions of 16 GPUs (nv_fm_types.h); a list of them is 200
// KiB.
constexpr std::size_t mostPartitions = 256;
constexpr std::size_t mostGpus = 64;
constexpr unsigned largestNumber = 1023;
constexpr std::size_t listLimit = std::size_t{1} << 20U;
constexpr JsonLimits listLimits{listLimit, 8, 200'000};

const char* const managerRemedy =
    "check that the fabric manager runs with FABRIC_MODE=1 in its configuration and has started "
    "without an error: `systemctl status nvidia-fabricmanager`; then `fmpm -l` lists its "
    "partitions";

const JsonSource listSource{"invalid list of partitions from fmpm", managerRemedy};

/// Return values of the fabric manager's library that a request for partitions can have
/// (nv_fm_types.h).
constexpr std::array<std::pair<int, std::string_view>, 13> results{
    {{-2, "FM_ST_GENERIC_ERROR"},
     {-3, "FM_ST_NOT_SUPPORTED"},
     {-4, "FM_ST_UNINITIALIZED"},
     {-5, "FM_ST_TIMEOUT"},
     {-6, "FM_ST_VERSION_MISMATCH"},
     {-7, "FM_ST_IN_USE"},
     {-8, "FM_ST_NOT_CONFIGURED"},
     {-9, "FM_ST_CONNECTION_NOT_VALID"},
     {-10, "FM_ST_NVLINK_ERROR"},
     {-12, "FM_ST_RESOURCE_IN_USE"},
     {-22, "FM_ST_NOT_READY"},
     {-23, "FM_ST_RESOURCE_USED_IN_THIS_PARTITION"},
     {-24, "FM_ST_RESOURCE_USED_IN_ANOTHER_PARTITION"}}};

// The program's message, with the name of the library's return value: `Failed to get partition
// list. fmReturn: -8 (FM_ST_NOT_CONFIGURED)`.
std::string messageIn(std::string_view output) {
  constexpr std::size_t longest = 300;
  constexpr std::string_view mark = "fmReturn: -";
  std::string text(trim(output.substr(0, longest)));
  if (text.empty()) {
    return "it printed nothing";
  }
  const auto at = text.rfind(mark);
  const auto number =
      at == std::string::npos ? std::nullopt : parseNumber(trim(text.substr(at + mark.size())));
  const auto known = std::ranges::find_if(results, [&](const auto& result) {
    return number && result.first == -static_cast<int>(std::min<std::uint64_t>(*number, 1000));
  });
  return printableLine(text) +
         (known == results.end() ? "" : " (" + std::string(known->second) + ")");
}

// The list begins in a line of its own. The loader and the library may have written warnings before
// it.
std::string_view listIn(std::string_view output) {
  if (output.starts_with("{")) {
    return output;
  }
  const auto before = output.find("\n{");
  return before == std::string_view::npos ? std::string_view() : output.substr(before + 1);
}

// 00000000:00:00.0, or nothing, stands for an address that the fabric manager does not know.
std::optional<PciAddress> pciAddressIn(const JsonReader& member) {
  const std::string text = member.requireText();
  if (text.empty()) {
    return std::nullopt;
  }
  const PciAddress address = member.requireParsed(parsePciAddress);
  return address == PciAddress{} ? std::nullopt : std::optional(address);
}

PartitionGpu gpuIn(const JsonReader& json) {
  return {json["physicalId"].requireNumber<unsigned>(largestNumber),
          pciAddressIn(json["pciBusId"])};
}

FabricPartition partitionIn(const JsonReader& json) {
  FabricPartition partition;
  partition.id = json["partitionId"].requireNumber<unsigned>(largestNumber);
  partition.active = json["isActive"].requireNumber<unsigned>(1) == 1;
  const auto count = json["numGpus"].requireNumber<std::size_t>(mostGpus);
  std::set<unsigned> modules;
  for (const JsonReader& element : json["gpuInfo"].requireList(mostGpus)) {
    partition.gpus.push_back(gpuIn(element));
    if (!modules.insert(partition.gpus.back().module).second) {
      element.refuse("a GPU is listed twice");
    }
  }
  if (partition.gpus.size() != count || count == 0) {
    json["numGpus"].refuse("another number of GPUs than are listed");
  }
  return partition;
}

// Adds what one partition says of its GPUs to what the earlier ones have said.
class SeenGpus {
 public:
  void add(const FabricPartition& partition, const JsonReader& json) {
    for (const PartitionGpu& gpu : partition.gpus) {
      if (partition.active && !active_.emplace(gpu.module, partition.id).second) {
        json.refuse("partition " + std::to_string(partition.id) + " and partition " +
                    std::to_string(active_.at(gpu.module)) +
                    " are both active and share the GPU with module ID " +
                    std::to_string(gpu.module));
      }
      if (gpu.address &&
          (addresses_.emplace(gpu.module, *gpu.address).first->second != *gpu.address ||
           modules_.emplace(*gpu.address, gpu.module).first->second != gpu.module)) {
        json.refuse("the list has two addresses for one GPU, or two GPUs at " +
                    toString(*gpu.address));
      }
    }
  }

 private:
  std::map<unsigned, unsigned> active_;  // partitions by module
  std::map<unsigned, PciAddress> addresses_;
  std::map<PciAddress, unsigned> modules_;
};

std::vector<FabricPartition> partitionsIn(const JsonReader& json) {
  std::vector<FabricPartition> partitions;
  std::set<unsigned> numbers;
  SeenGpus seen;
  for (const JsonReader& element : json["partitionInfo"].requireList(mostPartitions)) {
    partitions.push_back(partitionIn(element));
    seen.add(partitions.back(), element);
    if (!numbers.insert(partitions.back().id).second) {
      element.refuse("two partitions have the number " + std::to_string(partitions.back().id));
    }
  }
  return partitions;
}

}  // namespace

std::string findFmpm(const Root& root) {
  const auto found =
      std::ranges::find_if(fmpmPlaces, [&](const char* place) { return root.exists(place); });
  return found == fmpmPlaces.end() ? "" : "/" + std::string(*found);
}

std::vector<FabricPartition> parsePartitions(std::string_view output) {
  const std::string_view list = listIn(output);
  if (list.empty()) {
    throw Error("fmpm lists no partitions: " + messageIn(output), managerRemedy);
  }
  const auto document = parseJson(list, listLimits, listSource);
  return partitionsIn(JsonReader(document, listSource));
}

std::vector<FabricPartition> readPartitions(const std::string& fmpm,
                                            std::chrono::milliseconds deadline) {
  const auto output = programOutput({fmpm, "-l"}, deadline, listLimit);
  if (!output) {
    throw Error("`" + printable(fmpm) + " -l` did not answer within " +
                    std::to_string(deadline.count()) + " ms, or cannot be run",
                managerRemedy);
  }
  return parsePartitions(*output);
}

namespace {

using FabricClock = std::chrono::steady_clock;

std::string deactivation(const FabricPartition& other) {
  return "run `fmpm -d " + std::to_string(other.id) + "` once no VM uses those GPUs";
}

// One change through fmpm, and the queries around it, which share a deadline.
class PartitionChange {
 public:
  PartitionChange(std::string fmpm, std::chrono::milliseconds deadline)
      : fmpm_(std::move(fmpm)), end_(FabricClock::now() + deadline) {}

  [[nodiscard]] std::vector<FabricPartition> list() const { return readPartitions(fmpm_, left()); }

  // The exit status is not needed: the list tells.
  void change(const std::string& option, unsigned id, bool active) const {
    const std::string number = std::to_string(id);
    const std::string command = "`" + printable(fmpm_) + " " + option + " " + number + "`";
    const auto output = programOutput({fmpm_, option, number}, left());
    if (!output) {
      throw TimeoutError(command + " did not return in time: the fabric manager may still make it",
                         managerRemedy);
    }
    const auto after = list();
    const auto found = std::ranges::find(after, id, &FabricPartition::id);
    if (found != after.end() && found->active == active) {
      return;
    }
    const FabricPartition* other =
        active && found != after.end() ? activeOverlap(after, *found) : nullptr;
    if (other != nullptr) {  // by this request or by somebody else: it stays
      throw Error(command + " had no effect, and partition " + std::to_string(other->id) +
                      ", which has GPUs of it, is active now: " + messageIn(*output),
                  deactivation(*other));
    }
    throw Error(command + " had no effect: " + messageIn(*output), managerRemedy);
  }

 private:
  [[nodiscard]] std::chrono::milliseconds left() const {
    using std::chrono::milliseconds;
    return std::max(std::chrono::duration_cast<milliseconds>(end_ - FabricClock::now()),
                    milliseconds{1});
  }

  std::string fmpm_;
  FabricClock::time_point end_;
};

std::string moduleNumbers(const std::set<unsigned>& modules) {
  std::vector<std::string> numbers;
  for (const unsigned module : modules) {
    numbers.push_back(std::to_string(module));
  }
  return join(numbers, ", ");
}

void activatePartition(const PartitionChange& fabric, const std::set<unsigned>& modules,
                       const std::function<void()>& activating) {
  const auto partitions = fabric.list();
  const FabricPartition* wanted = findPartition(partitions, modules);
  if (wanted == nullptr) {
    throw Error("no partition of the fabric manager holds exactly the GPUs with the module IDs " +
                    moduleNumbers(modules),
                "compare them with `fmpm -l`, then correct the mapping and run `vfpass attach`",
                ExitCode::refused);
  }
  if (const FabricPartition* other = activeOverlap(partitions, *wanted)) {
    throw Error("partition " + std::to_string(other->id) + " of the fabric manager is active and " +
                    "has GPUs of partition " + std::to_string(wanted->id) + ", which this VM needs",
                deactivation(*other), ExitCode::refused);
  }
  if (!wanted->active) {
    activating();
    fabric.change("-a", wanted->id, true);
  }
}

// A partition that stays active would join GPUs that go to different VMs.
void requireClient(const std::string& fmpm, const SetPartition& action) {
  const std::string missing = "fmpm is not installed on this host: cannot ";
  if (fmpm.empty() && action.active) {
    throw Error(missing + "activate the partition of the GPUs",
                "install fmpm, or run `vfpass attach` without it: then nothing is activated");
  }
  if (fmpm.empty()) {
    std::vector<std::string> gpus;
    std::ranges::transform(action.gpus, std::back_inserter(gpus),
                           [](const PciAddress& gpu) { return toString(gpu); });
    throw Error(
        missing + "deactivate the partition of " + join(gpus, ", ") +
            ", which a start has activated",
        "install fmpm, then run `vfpass recover`; or deactivate it where the fabric manager "
        "runs, then run `vfpass recover --abandon NUMBER` with the number of this "
        "operation, and `vfpass attach`");
  }
}

}  // namespace

void setPartition(const std::string& fmpm, const SetPartition& action,
                  const std::function<void()>& activating, std::chrono::milliseconds deadline) {
  requireClient(fmpm, action);
  const PartitionChange fabric(fmpm, deadline);
  const std::set<unsigned> modules(action.modules.begin(), action.modules.end());
  if (action.active) {
    return activatePartition(fabric, modules, activating);
  }
  const auto partitions = fabric.list();
  const FabricPartition* ended = findPartition(partitions, modules);
  if (ended != nullptr && ended->active) {
    fabric.change("-d", ended->id, false);
  }
}

std::string fabricManagerVersion(std::string_view output) {
  constexpr std::string_view mark = "Fabric Manager version is";
  const auto at = output.find(mark);
  if (at == std::string_view::npos) {
    return {};
  }
  std::string_view rest = trim(output.substr(at + mark.size()));
  rest = trim(rest.starts_with(":") ? rest.substr(1) : rest);
  return std::string(rest.substr(0, rest.find_first_not_of("0123456789.")));
}

std::optional<std::string> readFabricManagerVersion(std::chrono::milliseconds deadline) {
  const auto output = programOutput({"/usr/bin/nv-fabricmanager", "--version"}, deadline);
  return output ? std::optional(fabricManagerVersion(*output)) : std::nullopt;
}

}  // namespace vfpass::host
