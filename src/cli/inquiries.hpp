#pragma once

#include "session.hpp"
#include "vfpass/doctor/doctor.hpp"

namespace vfpass::cli {

/// Doctor's queries to libvirt. They run only when a check needs them, and never for a captured
/// tree. The result must not outlive the session.
doctor::Inquiries inquiriesOf(Session& session);

}  // namespace vfpass::cli
