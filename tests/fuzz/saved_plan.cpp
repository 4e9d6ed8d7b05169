// A file for `--plan`, which anybody may have written.
// covers: src/commands/saved_plan.cpp -planToSave -describeScope -addSteps
#include "saved_plan.hpp"

#include <algorithm>

#include "fake/temporary_folder.hpp"
#include "fuzz/target.hpp"

namespace vfpass::fuzz {
namespace {

template <typename Change>
void requireRefused(const commands::SavedPlan& plan, Change change) {
  commands::SavedPlan now = plan;
  change(now);
  require(now == plan || !accepted([&] {
            commands::requireSame(plan, now, "plan.json");
            return true;
          }),
          "a plan that differs from the saved one is refused");
}

// Each kind of difference.
void checkDifferences(const commands::SavedPlan& plan) {
  requireRefused(plan, [](auto& now) { now.domain += 'x'; });
  requireRefused(plan, [](auto& now) { now.scope += 'x'; });
  requireRefused(plan, [](auto& now) { now.xml += 'x'; });
  requireRefused(plan, [](auto& now) { now.steps.push_back({"", "wipe the disk", "{}"}); });
  requireRefused(plan, [](auto& now) { std::reverse(now.steps.begin(), now.steps.end()); });
  if (!plan.steps.empty()) {
    requireRefused(plan, [](auto& now) { now.steps.pop_back(); });
    requireRefused(plan, [](auto& now) { now.steps.front().change += ' '; });
  }
}

}  // namespace

void runTarget(std::string_view input) {
  static const fake::TemporaryFolder folder(fastFolder());
  const auto file = folder.path() / "plan.json";
  writeFile(file, input);
  const auto plan = accepted([&] { return commands::readSavedPlan(file, "attach"); });
  if (!plan) {
    return;
  }
  commands::writeSavedPlan(file, plan->value());
  const auto again = commands::readSavedPlan(file, "attach");
  require(again == *plan, "a plan that is written reads the same");
  commands::requireSame(*plan, again.value(), file);
  checkDifferences(plan->value());
}

}  // namespace vfpass::fuzz
