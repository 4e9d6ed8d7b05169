#pragma once

#include <iosfwd>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "vfpass/lease.hpp"
#include "vfpass/vf_settings.hpp"

namespace vfpass::report {

/// Keeps members in the order in which they were put in, so that golden files hold still.
using Json = nlohmann::ordered_json;

/// An object whose first member is `schema_version`.
Json newDocument();

/// Indented, with a newline at the end. Text that is not UTF-8 gets replacement characters instead
/// of an exception, and everything outside ASCII is escaped: a domain name may hold terminal codes.
void writeDocument(std::ostream& out, const Json& document);

/// Text that may be missing: empty becomes null.
Json textOrNull(const std::string& text);

/// What cannot be observed becomes null.
template <typename Value>
Json valueOrNull(const std::optional<Value>& value) {
  return value ? Json(*value) : Json();
}

/// `{name, uuid}`: how every document names a domain.
Json domainJson(const std::string& name, const Uuid& uuid);

/// All attributes; null for each that is not observable.
Json settingsJson(const VfSettings& settings);

}  // namespace vfpass::report
