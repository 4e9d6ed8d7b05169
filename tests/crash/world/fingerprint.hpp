#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "vfpass/lease.hpp"
#include "vfpass/soft_roce.hpp"
#include "world/world.hpp"

namespace vfpass::crash {

struct FingerprintScope {
  bool kernel = true;
  /// The attributes of a leased VF whose domain is shut off. The neutral values and those of the
  /// lease are equally right there, because the hook sets them when the domain starts.
  bool idleAttributes = true;
};

/// What the next writer would read from the database.
struct Records {
  std::vector<Lease> leases;
  std::vector<SoftRoceRecord> softRoce;
  std::size_t openOperations = 0;  ///< interrupted ones
  std::uint64_t lastGeneration = 0;
};
Records recordsIn(const World& world);
std::vector<Lease> leasesIn(const World& world);
std::size_t openOperationsIn(const World& world);

/// Everything that an operation has to change completely or not at all: PFs, VFs, drivers, leases
/// with their originals, and the domains' devices. One line for each object.
std::string fingerprint(const World& world, FingerprintScope scope = {});
/// `records`: those that are in the world now.
std::string fingerprint(const World& world, const Records& records, FingerprintScope scope = {});

/// The lines of `now` that `other` lacks, marked with +, and those of `other` that `now` lacks,
/// marked with -.
std::string difference(const std::string& now, const std::string& other);

}  // namespace vfpass::crash
