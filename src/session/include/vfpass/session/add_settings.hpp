#pragma once

#include <string>

#include "vfpass/plan/plan_attach.hpp"
#include "vfpass/report/plan_report.hpp"
#include "vfpass/session/command_session.hpp"
#include "vfpass/session/subject.hpp"

namespace vfpass::session {

/// Adds to the input the settings that the mapping's devices need and the persistent XML lacks
/// (docs/domain-settings.md), and the guest's cells as attach will create them.
void addSettings(Session& session, const Subject& subject, plan::AttachInput& input);

/// For `plan`; `after` is the XML after the plan.
report::PlanSettings settingsToShow(const plan::AttachInput& input,
                                    const plan::AttachDecision& decision, const std::string& after);

/// For `attach`: prints one line for each setting that it has not applied.
void noteSettings(Session& session, const plan::AttachInput& input,
                  const plan::AttachDecision& decision);

}  // namespace vfpass::session
