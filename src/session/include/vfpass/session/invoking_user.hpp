#pragma once

#include <optional>

#include "vfpass/events/journal_entry.hpp"

namespace vfpass::session {

/// The user who logged in and ran this command, even if as root by sudo, su or pkexec: the kernel's
/// login UID, or without one (no PAM) the user of sudo. nullopt for a service.
std::optional<events::Invoker> invokingUser();

/// Made of the content of /proc/self/loginuid and of sudo's SUDO_UID, which may be null.
std::optional<unsigned> invokingUserId(const std::string& loginUid, const char* sudoUid);

}  // namespace vfpass::session
