#pragma once

#include "vfpass/doctor/doctor.hpp"
#include "vfpass/session/command_session.hpp"

namespace vfpass::session {

/// Doctor's queries to libvirt. They run only when a check needs them, and never for a captured
/// tree. The result must not outlive the session.
doctor::Inquiries inquiriesOf(Session& session);

}  // namespace vfpass::session
