#pragma once

#include <string>

#include "session.hpp"
#include "subject.hpp"
#include "vfpass/plan/attach.hpp"
#include "vfpass/report/plan_report.hpp"

namespace vfpass::cli {

/// Adds to the input what the persistent XML lacks for the mapping's devices, beside them
/// (docs/domain-settings.md), and the guest's cells as attach will make them.
void lookAtSettings(Session& session, const Subject& subject, plan::AttachInput& input);

/// For `plan`; `after` is the XML that the plan leads to.
report::PlanSettings settingsToShow(const plan::AttachInput& input,
                                    const plan::AttachDecision& decision, const std::string& after);

/// For `attach`: one line for each setting that it has not made.
void noteSettings(Session& session, const plan::AttachInput& input,
                  const plan::AttachDecision& decision);

}  // namespace vfpass::cli
