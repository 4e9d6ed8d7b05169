#pragma once

#include <string>

#include "vfpass/lease.hpp"
#include "vfpass/model/record.hpp"

namespace vfpass::model {

/// The whole lease, including state and boot, as one line of JSON.
std::string encodeLease(const Lease& lease);
/// The exact inverse. Throws as decode().
Lease decodeLease(const JsonReader& json);

/// The lease without its domain, state and boot, as its domain's metadata has it: one line of
/// ASCII, because libvirt indents each line of metadata.
std::string encodeTerms(const Lease& lease);
/// The inverse; the other members have their defaults. Throws as decode().
Lease decodeTerms(const JsonReader& json);

/// One member of the list `edits` of a lease. Throws as decode().
DomainEdit decodeEdit(const JsonReader& json);

}  // namespace vfpass::model
