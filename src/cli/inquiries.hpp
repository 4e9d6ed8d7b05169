#pragma once

#include "session.hpp"
#include "vfpass/doctor/doctor.hpp"

namespace vfpass::cli {

/// What doctor asks of libvirt. Nothing is asked before a check does, and nothing of a captured
/// tree. It must not outlive the session.
doctor::Inquiries inquiriesOf(Session& session);

}  // namespace vfpass::cli
