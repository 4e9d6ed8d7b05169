#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "vfpass/plan/plan_attach.hpp"

namespace vfpass::plan {

/// Entries of the mapping whose device the domain has leased under another name, with that name:
/// those that name the VF or the function itself, and those with `index: auto` on the PF of a lease
/// that no entry has any more, which has the same settings if there is such a one.
std::map<std::string, std::string> findRenames(const AttachInput& input);

/// The same for these leases. `onPf` tells whether the entry can have the PF of the lease.
std::map<std::string, std::string> findRenames(
    const Mapping& mapping, const std::vector<Lease>& leases, const Uuid& domain,
    const std::function<bool(const MappedVf& entry, const Lease& lease)>& onPf);

/// The input with these leases under their new names; nullopt without any.
std::optional<AttachInput> withRenames(const AttachInput& input);

/// The lease under the name that it is recorded with.
Lease asRecorded(const AttachInput& input, Lease lease);

/// The leases of all domains under the names that they are recorded with.
std::vector<Lease> asRecorded(const AttachInput& input);

/// Adds problems for renames that are not possible: the running guest has a device by its alias,
/// and a name that another lease still has cannot be recorded twice.
void checkRenames(const AttachInput& input, std::vector<Objection>& objections);

/// Adds the steps that end the records under the old names. The devices are not touched.
void dropRenamed(const AttachInput& input, std::vector<Step>& steps);

}  // namespace vfpass::plan
