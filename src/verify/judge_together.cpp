#include "judge_together.hpp"

#include <algorithm>
#include <cmath>
#include <iomanip>
#include <limits>
#include <sstream>

#include "vfpass/agent/reply.hpp"
#include "vfpass/error.hpp"

namespace vfpass::verify {
namespace {

using Json = nlohmann::json;

constexpr const char* otherBuild = "check that both guests run the probe of this vfpass build";

std::string withTenth(double value) {
  std::ostringstream text;
  text << std::fixed << std::setprecision(1) << value;
  return text.str();
}

double numberIn(const Json& object, const char* name) {
  const auto found = object.find(name);
  const double value =
      found != object.end() && found->is_number() ? found->get<double>() : std::nan("");
  return std::isfinite(value) ? value : -1;
}

// nullopt for a report without sustained transfers, or with impossible values.
std::optional<SustainedRun> sustainedOf(const Json& report) {
  const Json& runs = agent::listMember(report, "runs");
  const auto found = runs.empty() ? runs.end() : runs.begin();
  if (found == runs.end() || !found->is_object() || !found->contains("sustained") ||
      !found->at("sustained").is_object()) {
    return std::nullopt;
  }
  const Json& sustained = found->at("sustained");
  const SustainedRun run{numberIn(sustained, "begin_seconds"), numberIn(sustained, "end_seconds"),
                         numberIn(sustained, "gigabits_per_second")};
  const bool possible = run.begin >= 0 && run.end > run.begin && run.gigabitsPerSecond > 0;
  return possible ? std::optional(run) : std::nullopt;
}

std::uint64_t sustainedBytes(const Transfer& transfer, const Json& report) {
  const Json& messages =
      agent::listMember(report, "runs").front().at("sustained").value("messages", Json());
  const std::uint64_t count =
      messages.is_number_unsigned() ? messages.get<std::uint64_t>() : std::uint64_t{0};
  return count > std::numeric_limits<std::uint64_t>::max() / 2 / transfer.messageBytes
             ? std::numeric_limits<std::uint64_t>::max() / 2
             : count * transfer.messageBytes;
}

}  // namespace

TogetherVerdict judgeTogether(const Transfer& transfer, std::future<PairReports>& reports) {
  TogetherVerdict verdict{{"peer-together-" + transfer.memory,
                           transfer.subject,
                           Outcome::notObservable,
                           "writes while all other pairs move data as well, all correct",
                           {},
                           {}},
                          {},
                          0};
  try {
    const PairReports both = reports.get();
    std::vector<Figure> ofCheckedPasses;
    const Finding data = judgePairTransfer(transfer, both, ofCheckedPasses);
    verdict.finding.outcome = data.outcome;
    verdict.finding.seen = data.seen;
    verdict.finding.remedy = data.remedy;
    if (data.outcome != Outcome::passed) {
      return verdict;
    }
    verdict.run = sustainedOf(both.initiator);
    if (!verdict.run) {
      verdict.finding.outcome = Outcome::failed;
      verdict.finding.seen = "no sustained transfers in the report";
      verdict.finding.remedy = otherBuild;
      return verdict;
    }
    verdict.claimedBytes =
        claimedBytes(transfer, both.initiator) + sustainedBytes(transfer, both.initiator);
    verdict.finding.seen = withTenth(verdict.run->gigabitsPerSecond) + " Gb/s for " +
                           withTenth(verdict.run->end - verdict.run->begin) + " s";
  } catch (const Error& error) {
    verdict.finding.seen = error.what();
    verdict.finding.remedy = error.remedy();
  }
  return verdict;
}

Finding judgeOverlap(std::size_t pairs, const std::vector<SustainedRun>& runs, AllPairs& together) {
  Finding finding{"all-pairs", "", Outcome::notObservable, "all pairs move data at the same time",
                  {},          {}};
  if (runs.size() < pairs) {
    finding.seen = std::to_string(pairs - runs.size()) + " of " + std::to_string(pairs) +
                   " pairs did not complete";
    finding.remedy = "resolve the failed checks of these pairs, then verify again";
    return finding;
  }
  double lastBegin = 0;
  double firstEnd = std::numeric_limits<double>::max();
  together.shortestSeconds = std::numeric_limits<double>::max();
  for (const SustainedRun& run : runs) {
    lastBegin = std::max(lastBegin, run.begin);
    firstEnd = std::min(firstEnd, run.end);
    together.shortestSeconds = std::min(together.shortestSeconds, run.end - run.begin);
  }
  together.overlapSeconds = std::max(0.0, firstEnd - lastBegin);
  double alone = 0;
  for (const PairRate& rate : together.pairs) {
    alone += rate.alone;
  }
  const std::string overlap = withTenth(together.overlapSeconds) + " s";
  if (together.overlapSeconds < together.shortestSeconds / 2) {
    finding.seen = "all pairs moved data at the same time for only " + overlap + " of " +
                   withTenth(together.shortestSeconds) + " s";
    finding.remedy = "verify again with a longer --sustain";
    return finding;
  }
  finding.outcome = Outcome::passed;
  finding.seen = std::to_string(pairs) + (pairs == 1 ? " pair: " : " pairs: ") +
                 withTenth(together.aggregate()) + " Gb/s at the same time for " + overlap +
                 "; the sum of each alone is " + withTenth(alone) + " Gb/s";
  return finding;
}

}  // namespace vfpass::verify
