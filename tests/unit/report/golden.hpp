#pragma once

#include <string>

namespace vfpass::report {

/// Fails unless tests/unit/report/golden/NAME equals `text`; with VFPASS_REGENERATE=1 in the
/// environment, writes the file instead.
void expectGolden(const std::string& name, const std::string& text);

/// Fails unless `text` is JSON that is valid by docs/json/SCHEMA.schema.json and begins with
/// `schema_version`.
void expectValid(const std::string& schema, const std::string& text);

}  // namespace vfpass::report
