#pragma once

#include "vfpass/metrics/metrics.hpp"
#include "vfpass/session/command_session.hpp"

namespace vfpass::cli {

/// Reads everything that `vfpass metrics` reports. A part that cannot be read is missing and marked
/// as failed, with a warning on stderr. Of a captured tree only devices and doctor are read.
metrics::Observation collectMetrics(session::Session& session);

}  // namespace vfpass::cli
