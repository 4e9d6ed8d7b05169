#pragma once

#include <string>

namespace vfpass::report {

/// Fails unless tests/unit/report/golden/NAME holds exactly `text`; with VFPASS_REGENERATE=1 in the
/// environment it is written instead.
void expectGolden(const std::string& name, const std::string& text);

/// Fails unless `text` is JSON that docs/json/SCHEMA.schema.json allows and begins with
/// `schema_version`.
void expectValid(const std::string& schema, const std::string& text);

}  // namespace vfpass::report
