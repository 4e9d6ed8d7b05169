#include "device_records.hpp"

#include <algorithm>
#include <chrono>
#include <ctime>
#include <iomanip>
#include <sstream>

#include "vfpass/base/text.hpp"

namespace vfpass::apply {
namespace {

std::string timeNow() {
  const std::time_t now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  std::tm parts{};
  ::gmtime_r(&now, &parts);
  std::ostringstream text;
  text << std::put_time(&parts, "%Y-%m-%dT%H:%M:%SZ");
  return text.str();
}

std::string messageOf(const std::exception_ptr& failure) {
  try {
    std::rethrow_exception(failure);
  } catch (const Error& error) {
    return error.what();
  }
}

ResetResult resultOf(const ResetOutcome& outcome, const std::string& time) {
  ResetResult result{time, outcome.methods, ""};
  if (outcome.failure) {
    result.failure = messageOf(outcome.failure);
  } else if (!outcome.done) {
    result.failure = "the kernel has no method to reset it";
  }
  return result;
}

void recordReset(const PciAddress& device, const ResetOutcome& outcome,
                 const std::vector<Lease>& leases, Tools& tools) {
  const std::string time = timeNow();
  const auto lease = std::ranges::find(leases, device, &Lease::device);
  if (lease != leases.end()) {
    DeviceUse use = tools.database.deviceUse(device).value_or(
        DeviceUse{device, lease->domain, std::nullopt, std::nullopt});
    use.reset = resultOf(outcome, time);
    tools.database.recordUse(use);
  }
  if (outcome.failure) {
    tools.database.quarantine({device, "its reset failed: " + messageOf(outcome.failure), time});
  }
}

}  // namespace

void resetDevices(const std::vector<ResetFunction>& resets, Tools& tools) {
  const auto outcomes = tools.kernel.resetFunctions(resets);
  const auto leases = tools.database.leases();
  tools.database.together([&] {
    for (std::size_t at = 0; at < outcomes.size(); ++at) {
      recordReset(resets[at].function, outcomes[at], leases, tools);
    }
  });
  std::vector<std::exception_ptr> failures;
  std::ranges::transform(outcomes, std::back_inserter(failures), &ResetOutcome::failure);
  throwAny(failures);
}

}  // namespace vfpass::apply
