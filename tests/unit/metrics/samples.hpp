#pragma once

#include "vfpass/metrics/metrics.hpp"

namespace vfpass::metrics::samples {

/// A host with everything: two PFs, counters, leases with drift, findings, verifications.
Observation full();

/// A host without libvirt, records and answers.
Observation bare();

/// The same as full() with hostile names.
Observation hostile();

}  // namespace vfpass::metrics::samples
