#include "transfer/side.hpp"

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>

#include "gpu/gpu_memory.hpp"
#include "transfer/timing.hpp"

namespace vfpass::probe {
namespace {

nlohmann::json toJson(const Corruption& corruption) {
  return {{"damage", damageName(corruption.damage)},
          {"message", corruption.message},
          {"slot", corruption.slot},
          {"offset", corruption.offset},
          {"wrong_bytes", corruption.wrongBytes},
          {"found_message", corruption.foundMessage},
          {"expected", corruption.expected},
          {"seen", corruption.seen}};
}

QueueSizes queuesFor(const Settings& settings, const Ring& ring) {
  QueueSizes sizes;
  sizes.send = std::max<std::uint32_t>(settings.depth, 2);
  if (settings.operation == Operation::send) {
    sizes.receive = static_cast<std::uint32_t>(ring.slots);
  }
  return sizes;
}

/// A send test posts a receive for every slot at once, so it limits the number of slots.
Ring ringFor(const Settings& settings, std::uint64_t offset) {
  constexpr std::uint64_t maxReceives = 256;
  const std::uint64_t messages = settings.operation == Operation::send
                                     ? std::min(settings.iterations, maxReceives)
                                     : settings.iterations;
  return makeRing(settings.bytes, messages, settings.memoryLimit, offset);
}

}  // namespace

nlohmann::json toJson(const OwnerWork& work) {
  nlohmann::json corruptions = nlohmann::json::array();
  for (const Corruption& corruption : work.result.corruptions) {
    corruptions.push_back(toJson(corruption));
  }
  return {{"messages_checked", work.result.messages},
          {"bytes_checked", work.result.bytes},
          {"wrong_messages", work.result.wrongMessages},
          {"wrong_bytes", work.result.wrongBytes},
          {"corruptions", corruptions},
          {"prepare_seconds", work.prepareSeconds},
          {"check_seconds", work.checkSeconds}};
}

Side::Side(Role role, const Settings& settings, const Resources& resources)
    : role_(role),
      settings_(settings),
      source_(ringFor(settings, settings.alignment)),
      destination_(ringFor(
          settings, settings.alignment + (hasSource() ? source_.slots * source_.stride : 0))),
      onGpu_(role == Role::initiator ? settings.initiatorOnGpu : settings.targetOnGpu),
      memory_(allocate(resources)),
      endpoint_(resources.verbs, resources.port, queuesFor(settings, source_)) {
  // Users count timed messages, but the first cycle's numbers belong to the warm-up.
  settings_.injection.message += source_.slots;
  // Only one of a send test's two senders injects faults.
  if (settings.operation == Operation::send && role == Role::target) {
    settings_.injection = {};
  }
  registration_ = &endpoint_.registerMemory(*memory_, settings.relaxedOrdering);
}

bool Side::hasSource() const {
  return settings_.operation == Operation::send ||
         (settings_.operation == Operation::write) == (role_ == Role::initiator);
}

bool Side::hasDestination() const { return settings_.operation == Operation::send || !hasSource(); }

std::unique_ptr<Memory> Side::allocate(const Resources& resources) const {
  const std::uint64_t bytes = hasDestination() ? destination_.bytes() : source_.bytes();
  if (!onGpu_) {
    return std::make_unique<HostMemory>(bytes);
  }
  return std::make_unique<GpuMemory>(openGpu(resources.gpu), bytes, source_.slots);
}

std::uint64_t Side::seedOf(Role sender) const {
  return settings_.seed * 2 + (sender == Role::target ? 1 : 0);
}

std::uint64_t Side::receivedSeed() const {
  return seedOf(role_ == Role::initiator ? Role::target : Role::initiator);
}

ConnectionInfo Side::describe() const {
  return endpoint_.describe(addressOf(hasSource() ? source_ : destination_, 0));
}

void Side::connect(const ConnectionInfo& peer) {
  endpoint_.connect(peer);
  peer_ = peer;
}

void Side::prepare(const MessageRange& range) {
  if (!settings_.check) {
    return;
  }
  const auto begin = std::chrono::steady_clock::now();
  if (hasSource()) {
    const std::uint64_t seed = seedOf(role_);
    memory_->fill(source_, seed, range);
    corruptSource(*memory_, source_, seed, range, settings_.injection);
  }
  if (hasDestination()) {
    memory_->poison(destination_, receivedSeed(), range);
  }
  work_.prepareSeconds += secondsSince(begin);
}

void Side::check(const MessageRange& range) {
  if (!settings_.check || !hasDestination()) {
    return;
  }
  const auto begin = std::chrono::steady_clock::now();
  work_.result.add(checkMessages(*memory_, destination_, receivedSeed(), range));
  work_.checkSeconds += secondsSince(begin);
}

nlohmann::json Side::memoryReport() const {
  return {{"kind", onGpu_ ? "gpu" : "host"},
          {"bytes", memory_->bytes()},
          {"registration", methodName(registration_->method)},
          {"rejected", registration_->rejected},
          {"gid_index", endpoint_.gidIndex()}};
}

}  // namespace vfpass::probe
