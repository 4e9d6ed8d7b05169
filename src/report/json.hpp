#pragma once

#include <iosfwd>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "vfpass/lease.hpp"
#include "vfpass/vf_settings.hpp"

namespace vfpass::report {

/// Keeps members in insertion order, so that golden files are stable.
using Json = nlohmann::ordered_json;

/// An object whose first member is `schema_version`.
Json newDocument();

/// Indented, with a trailing newline. Replaces bytes that are not UTF-8 instead of throwing, and
/// escapes everything but ASCII: a domain name may contain terminal codes.
void writeDocument(std::ostream& out, const Json& document);

/// Optional text: empty becomes null.
Json textOrNull(const std::string& text);

/// Unobservable values become null.
template <typename Value>
Json valueOrNull(const std::optional<Value>& value) {
  return value ? Json(*value) : Json();
}

/// `{name, uuid}`: the form of a domain in every document.
Json domainJson(const std::string& name, const Uuid& uuid);

/// `{domain, entry, state}` of a lease; null: not leased.
Json leaseJson(const Lease* lease);

/// All attributes; unobservable ones are null.
Json settingsJson(const VfSettings& settings);

}  // namespace vfpass::report
