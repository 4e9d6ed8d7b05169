#include <algorithm>
#include <map>
#include <ostream>

#include "json.hpp"
#include "text_values.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/report/check_pages.hpp"
#include "vfpass/report/command_reports.hpp"
#include "vfpass/report/table.hpp"

namespace vfpass::report {
namespace {

constexpr std::size_t maxNamedSubjects = 2;

/// All findings of one check with the same outcome and acceptance.
struct Group {
  const Diagnosis* first = nullptr;
  std::vector<std::string> subjects;
  bool alike = true;  ///< all found the same
};

std::vector<Group> groupsOf(const std::vector<Diagnosis>& diagnoses) {
  std::vector<Group> groups;
  for (const Diagnosis& each : diagnoses) {
    const auto known = std::ranges::find_if(groups, [&](const Group& group) {
      return group.first->finding.key == each.finding.key &&
             group.first->finding.outcome == each.finding.outcome &&
             describeAcceptance(*group.first) == describeAcceptance(each);
    });
    Group& group = known == groups.end() ? groups.emplace_back(Group{&each, {}, true}) : *known;
    group.alike = group.alike && group.first->finding.seen == each.finding.seen;
    if (!each.finding.subject.empty()) {
      group.subjects.push_back(each.finding.subject);
    }
  }
  return groups;
}

std::string namesOf(const Group& group) {
  if (group.subjects.size() <= maxNamedSubjects) {
    return group.subjects.empty() ? "-" : join(group.subjects, "; ");
  }
  return group.subjects.front() + " and " + std::to_string(group.subjects.size() - 1) + " more";
}

void writeSummary(std::ostream& out, const std::vector<Group>& groups, const Style& style) {
  std::map<Outcome, std::size_t> counts;
  std::size_t accepted = 0;
  for (const Group& group : groups) {
    ++(isAccepted(*group.first) ? accepted : counts[group.first->finding.outcome]);
  }
  const bool broken = counts[Outcome::failed] > 0;
  out << tinted(broken ? "not ready" : "ready", broken ? Tint::bad : Tint::good, style) << ": "
      << counts[Outcome::failed] << (counts[Outcome::failed] == 1 ? " check" : " checks")
      << " failed, " << counts[Outcome::passed] << " passed, " << counts[Outcome::notObservable]
      << " not observable, " << counts[Outcome::waived] << " waived";
  if (counts[Outcome::warning] > 0) {
    out << ", " << counts[Outcome::warning] << " with warnings";
  }
  if (accepted > 0) {
    out << ", " << accepted << " accepted";
  }
  out << '\n';
}

// Some remedies contain lines to paste.
void writeRemedy(std::ostream& out, const std::string& remedy) {
  const char* start = "  remedy:   ";
  for (const std::string& line : splitLines(remedy)) {
    out << start << printable(line) << '\n';
    start = "            ";
  }
}

void writeBroken(std::ostream& out, const Group& group, const char* heading, const Style& style) {
  const Finding& finding = group.first->finding;
  out << '\n'
      << tinted(heading, Tint::heading, style)
      << tinted(finding.key, tintOf(finding.outcome), style)
      << (group.subjects.empty() ? "" : ", " + printable(namesOf(group))) << '\n'
      << "  why:      " << printable(group.first->why) << '\n'
      << "  expected: " << printable(finding.expected) << '\n'
      << "  found:    " << printable(finding.seen) << '\n';
  if (const std::string acceptance = describeAcceptance(*group.first); !acceptance.empty()) {
    out << "  " << printable(acceptance) << '\n';
  }
  writeRemedy(out, finding.remedy);
}

void writeChecks(std::ostream& out, const std::vector<Group>& groups, const Style& style) {
  Table table({"CHECK", "RESULT", "SUBJECT", "FOUND"});
  for (const Group& group : groups) {
    const Finding& finding = group.first->finding;
    const bool accepted = isAccepted(*group.first);
    table.add({{finding.key},
               {accepted ? "accepted" : std::string(toString(finding.outcome)),
                accepted ? Tint::warning : tintOf(finding.outcome)},
               {namesOf(group)},
               {finding.seen + (group.alike ? "" : ", ...")}});
  }
  table.write(out, style);
}

// What could not be seen may hide a problem.
void writeUnobserved(std::ostream& out, const std::vector<Group>& groups) {
  std::vector<std::string> keys;
  for (const Group& group : groups) {
    const bool unseen = group.first->finding.outcome == Outcome::notObservable;
    if (unseen && !isAccepted(*group.first)) {
      keys.push_back(group.first->finding.key);
    }
  }
  if (!keys.empty()) {
    out << "not observable: " << join(keys, ", ") << '\n';
  }
  out << "`vfpass doctor --all` lists every check and what it found\n";
}

// The first group that is a problem; null if there is none.
const Group* firstProblem(const std::vector<Group>& groups) {
  const auto isWarning = [](const Group& group) {
    return group.first->finding.outcome == Outcome::warning && !isAccepted(*group.first);
  };
  auto found =
      std::ranges::find_if(groups, [](const Group& each) { return isFailure(*each.first); });
  if (found == groups.end()) {
    found = std::ranges::find_if(groups, isWarning);
  }
  return found == groups.end() ? nullptr : &*found;
}

void writeText(std::ostream& out, const std::vector<Diagnosis>& diagnoses, ListedChecks listed,
               const Style& style) {
  const auto groups = groupsOf(diagnoses);
  writeSummary(out, groups, style);
  bool first = true;
  for (const Group& group : groups) {
    if (isFailure(*group.first)) {
      writeBroken(out, group, first ? "first problem: " : "further problem: ", style);
      first = false;
    }
  }
  for (const Group& group : groups) {
    if (group.first->finding.outcome == Outcome::warning && !isAccepted(*group.first)) {
      writeBroken(out, group, "warning: ", style);
    }
  }
  for (const Group& group : groups) {
    if (isAccepted(*group.first)) {
      writeBroken(out, group, "accepted: ", style);
    }
  }
  out << '\n';
  if (listed == ListedChecks::all) {
    writeChecks(out, groups, style);
  } else {
    writeUnobserved(out, groups);
  }
  if (const Group* problem = firstProblem(groups)) {
    writeExplainHint(out, problem->first->finding.key);
  }
}

Json acceptanceJson(const Diagnosis& each) {
  if (!each.acceptance) {
    return nullptr;
  }
  return {{"until", each.acceptance->until},
          {"reason", each.acceptance->reason},
          {"expired", each.acceptance->expired}};
}

void writeJson(std::ostream& out, const std::vector<Diagnosis>& diagnoses) {
  const bool broken = std::ranges::any_of(diagnoses, isFailure);
  Json document = newDocument();
  document["result"] = broken ? "failed" : "passed";
  document["findings"] = listJson(diagnoses, [](const Diagnosis& each) -> Json {
    return {{"key", each.finding.key},
            {"subject", textOrNull(each.finding.subject)},
            {"result", wordOf(each.finding.outcome)},
            {"why", each.why},
            {"expected", textOrNull(each.finding.expected)},
            {"seen", each.finding.seen},
            {"remedy", textOrNull(each.finding.remedy)},
            {"acceptance", acceptanceJson(each)}};
  });
  writeDocument(out, document);
}

}  // namespace

void writeDoctor(std::ostream& out, const std::vector<Diagnosis>& diagnoses, ListedChecks listed,
                 const Style& style) {
  if (style.json) {
    writeJson(out, diagnoses);
  } else {
    writeText(out, diagnoses, listed, style);
  }
}

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
