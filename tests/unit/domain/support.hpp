#pragma once

#include <random>
#include <string>
#include <vector>

#include "vfpass/domain/domain_xml.hpp"
#include "vfpass/error.hpp"

namespace vfpass::domain {

/// A file of tests/unit/domain/cases, byte for byte.
std::string readCase(const std::string& name);

/// The UUID of every case.
Uuid caseUuid();

/// Leases as attach creates them: `rail0`, a <hostdev> with everything set, and `rail1`, an
/// <interface>, both teamed with net0 and placed by placeDevices().
std::vector<Lease> sampleLeases(const std::string& xml);

/// Leases with random members and unique names, behind root ports of their own from bus 32 on.
std::vector<Lease> randomLeases(std::mt19937& random, std::size_t count);

/// `text` with the first occurrence of `from` replaced; fails the test if there is none.
std::string replaced(std::string text, const std::string& from, const std::string& to);

/// `text`, `count` times.
std::string repeated(const std::string& text, std::size_t count);

}  // namespace vfpass::domain
