#pragma once

#include <iosfwd>
#include <string>

#include "vfpass/imported_mapping.hpp"
#include "vfpass/report/table.hpp"

namespace vfpass::report {

/// `vfpass import VM`.
struct ImportReport {
  std::string vm;
  std::string command;     ///< the command line, for the first comment
  std::string schemaFile;  ///< of mappings
  ImportedMapping mapping;
};

/// `vfpass import --host`.
struct ImportHostReport {
  std::string command;
  ImportedHost host;
};

/// The mapping, with comments that state where each value is from and what has no entry.
std::string mappingText(const ImportReport& report);

/// host.yaml, with comments that name the files that must no longer set the same.
std::string hostText(const ImportHostReport& report);

/// Writes `text`, or with JSON the data and the text. `file`: where the text has been saved; empty:
/// nowhere. JSON: docs/json/import.schema.json.
void writeImport(std::ostream& out, const ImportReport& report, const std::string& text,
                 const std::string& file, const Style& style);
void writeImport(std::ostream& out, const ImportHostReport& report, const std::string& text,
                 const std::string& file, const Style& style);

}  // namespace vfpass::report
