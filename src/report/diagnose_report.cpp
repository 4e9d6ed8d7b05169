#include "vfpass/report/command_reports.hpp"

#include <algorithm>
#include <ostream>

#include "json.hpp"
#include "text_values.hpp"
#include "vfpass/base/text.hpp"

namespace vfpass::report {
namespace {

struct RankWords {
  const char* heading;
  const char* json;
  Tint tint;
};

RankWords wordsFor(Rank rank) {
  switch (rank) {
    case Rank::problem:
      return {"problem", "problem", Tint::bad};
    case Rank::unseen:
      return {"not observable", "not_observable", Tint::warning};
    case Rank::warning:
      break;
  }
  return {"warning", "warning", Tint::warning};
}

// On one line.
std::string titleOf(const DiagnosedItem& item) {
  return printable((item.subject.empty() ? "" : item.subject + ": ") + item.what);
}

void writeItem(std::ostream& out, const DiagnosedItem& item, const Style& style) {
  const RankWords words = wordsFor(item.rank);
  out << tinted(std::string(words.heading) + ": ", words.tint, style) << titleOf(item) << '\n'
      << "  from:     " << printable(item.source) << '\n';
  const char* start = "  remedy:   ";
  for (const std::string& line : splitLines(item.remedy)) {  // some have lines to paste
    out << start << printable(line) << '\n';
    start = "            ";
  }
}

const DiagnosedItem* firstProblemIn(const DiagnoseReport& report) {
  const auto found = std::ranges::find(report.items, Rank::problem, &DiagnosedItem::rank);
  return found == report.items.end() ? nullptr : &*found;
}

void writeDiagnoseJson(std::ostream& out, const DiagnoseReport& report) {
  Json document = newDocument();
  document["vm"] = report.vm;
  document["first_problem"] = Json();
  if (const DiagnosedItem* first = firstProblemIn(report)) {
    document["first_problem"] = titleOf(*first);
  }
  document["items"] = listJson(report.items, [](const DiagnosedItem& item) -> Json {
    return {{"rank", wordsFor(item.rank).json},
            {"source", item.source},
            {"subject", textOrNull(item.subject)},
            {"message", item.what},
            {"remedy", textOrNull(item.remedy)}};
  });
  writeDocument(out, document);
}

}  // namespace

void writeDiagnose(std::ostream& out, DiagnoseReport report, const Style& style) {
  std::ranges::stable_sort(report.items, {}, &DiagnosedItem::rank);
  if (style.json) {
    writeDiagnoseJson(out, report);
    return;
  }
  for (const DiagnosedItem& item : report.items) {
    writeItem(out, item, style);
  }
  const DiagnosedItem* first = firstProblemIn(report);
  out << (report.items.empty() ? "" : "\n")
      << "first problem: " << (first == nullptr ? "none" : titleOf(*first)) << '\n';
}

}  // namespace vfpass::report
