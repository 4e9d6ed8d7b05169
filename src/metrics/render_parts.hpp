#pragma once

#include "exposition.hpp"
#include "vfpass/metrics/metrics.hpp"

// The parts of render(), in the order of the families.
namespace vfpass::metrics {

void addDevices(const Observation& observation, Exposition& target);
void addLeases(const Observation& observation, Exposition& target);
void addDoctor(const Observation& observation, Exposition& target);
void addVerifications(const Observation& observation, Exposition& target);

/// `not_observable`: as in JSON.
std::string labelOf(Outcome outcome);

}  // namespace vfpass::metrics
