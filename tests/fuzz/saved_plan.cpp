// A file for `--plan`, which anybody may have written.
// covers: src/session/saved_plan.cpp -planToSave -describeScope -addSteps
#include "vfpass/session/saved_plan.hpp"

#include <fstream>

#include "fake/temporary_folder.hpp"
#include "fuzz/target.hpp"

namespace vfpass::fuzz {

void runTarget(std::string_view input) {
  static const fake::TemporaryFolder folder;
  const auto file = folder.path() / "plan.json";
  std::ofstream(file, std::ios::binary) << input;
  const auto plan = accepted([&] { return session::readSavedPlan(file, "attach"); });
  if (!plan) {
    return;
  }
  session::writeSavedPlan(file, plan->value());
  const auto again = session::readSavedPlan(file, "attach");
  require(again == *plan, "a plan that is written reads the same");
  session::requireSame(*plan, again.value(), file);
}

}  // namespace vfpass::fuzz
