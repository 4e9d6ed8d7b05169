#include "require_seal_key.hpp"

#include <algorithm>
#include <variant>

namespace vfpass::apply {
namespace {

bool sealsLeases(const Action& action) {
  if (const auto* edit = std::get_if<EditDomain>(&action)) {
    return !edit->leases.empty();
  }
  const auto* live = std::get_if<EditLiveMetadata>(&action);
  return live != nullptr && !live->leases.empty();
}

}  // namespace

void requireSealKey(const Plan& plan, const Tools& tools) {
  const bool seals = std::ranges::any_of(plan.steps, [](const Step& step) {
    return sealsLeases(step.action) || std::ranges::any_of(step.undo, sealsLeases);
  });
  if (seals && tools.sealKey.secret.empty()) {
    tools.makeSealKey();
  }
}

}  // namespace vfpass::apply
