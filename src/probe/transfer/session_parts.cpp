#include "transfer/session_parts.hpp"

#include <chrono>
#include <nlohmann/json.hpp>

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

void addSeconds(double& total, const std::function<void()>& work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  total += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

MessageRange cycleRange(const Ring& ring, std::uint64_t cycle, std::uint64_t count) {
  return {0, cycle * ring.slots, count};
}

}  // namespace vfpass::probe
