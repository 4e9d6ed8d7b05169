#pragma once

#include <string>
#include <vector>

#include "vfpass/apply/tools.hpp"

namespace vfpass::apply {

/// Does one action; idempotent. Appends what the user should know to `warnings`.
void perform(const Action& action, Tools& tools, std::vector<std::string>& warnings);

/// Resets several functions at the same time.
void performResets(const std::vector<ResetFunction>& resets, Tools& tools);

/// True for actions on the running domain.
bool isLiveAction(const Action& action);

/// True for actions that libvirt does: no lock of ours may be held during them.
bool isDomainAction(const Action& action);

/// True for actions whose effect a reboot takes away.
bool isKernelAction(const Action& action);

/// True when the domain's persistent XML is as the action wants it.
bool isInEffect(const EditDomain& action, Tools& tools);

}  // namespace vfpass::apply
