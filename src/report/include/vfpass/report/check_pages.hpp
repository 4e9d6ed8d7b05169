#pragma once

#include <iosfwd>
#include <string>
#include <string_view>
#include <vector>

#include "vfpass/finding.hpp"
#include "vfpass/report/table.hpp"

namespace vfpass::report {

/// What the documentation says of one check, in its words: text with the Markdown of `code`.
struct CheckPage {
  std::string key;          ///< as in findings, such as `acs`
  std::string command;      ///< whose check it is: `doctor` or `verify`
  std::string cause;        ///< of doctor: why it matters; of verify: the condition that is tested
  std::string remedy;       ///< what to do about it; the finding has the command
  std::string observer;     ///< of verify: who observes it; empty: the host
  std::string source;       ///< file and heading of its row: `docs/doctor.md, Checks`
  std::string details;      ///< the section to which its row refers, with its heading; may be empty
  std::string method = {};  ///< where the check looks, and with what
};

/// The documents of checks that are compiled in.
std::string_view doctorDocument();
std::string_view verifyDocument();

/// The checks in the tables of this document, in their order: a table of checks begins with `| key
/// |` or `| check |`. A key that several tables have, such as `counters`, has several pages. Tables
/// that begin with `| checks | method |` have the methods of several keys in a row, and in a third
/// column the remedies that the tables of checks lack.
std::vector<CheckPage> readCheckPages(const std::string& command, std::string_view document);

/// All checks of doctor, then those of verify.
std::vector<CheckPage> allCheckPages();

/// `vfpass explain`: one line for each key. JSON: docs/json/explain.schema.json.
void writeCheckList(std::ostream& out, const std::vector<CheckPage>& pages, const Style& style);

/// `vfpass explain CHECK`: these pages in full.
void writeCheckPages(std::ostream& out, const std::vector<CheckPage>& pages, const Style& style);

/// The line that ends a report with problems: which command describes the first one's check.
void writeExplainHint(std::ostream& out, const std::string& key);

/// The same below the text of `vfpass verify`; nothing without a failure or warning.
void writeExplainHint(std::ostream& out, const VerifyReport& report);

}  // namespace vfpass::report
