#include "perform.hpp"

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

bool isLiveAction(const Action& action) {
  return std::holds_alternative<EditLiveMetadata>(action) ||
         std::holds_alternative<PlugDevice>(action) || std::holds_alternative<UnplugDevice>(action);
}

bool isDomainAction(const Action& action) {
  return std::holds_alternative<EditDomain>(action) || isLiveAction(action);
}

bool isKernelAction(const Action& action) { return !isDomainAction(action) && !isRecord(action); }

bool isRecord(const Action& action) {
  return std::holds_alternative<RecordLease>(action) || std::holds_alternative<DropLease>(action) ||
         std::holds_alternative<RecordSoftRoce>(action) ||
         std::holds_alternative<ForgetSoftRoce>(action);
}

std::size_t batchEnd(const std::vector<Step>& steps, std::size_t first) {
  const auto alone = [&](std::size_t at) {
    return isDomainAction(steps[at].action) || std::holds_alternative<CreateVfs>(steps[at].action);
  };
  std::size_t end = first + 1;
  while (!alone(first) && end < steps.size() && !alone(end)) {
    ++end;
  }
  return end;
}

std::size_t restorationBegin(const Plan& plan) {
  if (plan.kind != PlanKind::attach) {
    return plan.kind == PlanKind::detach ? 0 : plan.steps.size();
  }
  const auto last = std::find_if(plan.steps.rbegin(), plan.steps.rend(),
                                 [](const Step& step) { return isDomainAction(step.action); });
  return last == plan.steps.rend() ? plan.steps.size()
                                   : static_cast<std::size_t>(plan.steps.rend() - last);
}

}  // namespace vfpass::apply
