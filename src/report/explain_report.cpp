#include <algorithm>
#include <ostream>
#include <set>
#include <sstream>
#include <string>

#include "json.hpp"
#include "text_values.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/report/check_pages.hpp"

namespace vfpass::report {
namespace {

constexpr std::size_t pageWidth = 100;
constexpr std::size_t summaryLength = 70;

// `label` and the text behind it, whose further lines begin below its first word.
void writeWrapped(std::ostream& out, const std::string& label, const std::string& text) {
  std::istringstream words(text);
  std::string line = label;
  bool isFirst = true;
  for (std::string word; words >> word; isFirst = false) {
    if (!isFirst && line.size() + 1 + word.size() > pageWidth) {
      out << line << '\n';
      line = std::string(label.size(), ' ');
      isFirst = true;
    }
    line += (isFirst ? "" : " ") + word;
  }
  out << line << '\n';
}

// Whole words of the beginning.
std::string beginningOf(const std::string& text) {
  if (text.size() <= summaryLength) {
    return text;
  }
  std::string begin = text.substr(0, text.rfind(' ', summaryLength));
  while (!begin.empty() && std::string_view(",;:.(").find(begin.back()) != std::string_view::npos) {
    begin.pop_back();
  }
  return begin + " ...";
}

void writePage(std::ostream& out, const CheckPage& page, const Style& style) {
  const bool ofDoctor = page.command == "doctor";
  out << tinted(page.key, Tint::heading, style) << ": a check of `vfpass " << page.command << "`\n";
  writeWrapped(out, ofDoctor ? "  why:       " : "  condition: ", page.cause);
  writeWrapped(out, "  method:    ", page.method);
  writeWrapped(out, "  observer:  ", page.observer.empty() ? "host" : page.observer);
  writeWrapped(out, "  remedy:    ", page.remedy);
  writeWrapped(out, "  source:    ", page.source);
  if (!page.details.empty()) {
    out << '\n' << page.details;
  }
}

void writePagesJson(std::ostream& out, const std::vector<CheckPage>& pages) {
  Json document = newDocument();
  document["checks"] = listJson(pages, [](const CheckPage& page) -> Json {
    return {{"key", page.key},       {"command", page.command},
            {"cause", page.cause},   {"observer", page.observer.empty() ? "host" : page.observer},
            {"method", page.method}, {"remedy", page.remedy},
            {"source", page.source}, {"details", textOrNull(page.details)}};
  });
  writeDocument(out, document);
}

}  // namespace

void writeCheckList(std::ostream& out, const std::vector<CheckPage>& pages, const Style& style) {
  if (style.json) {
    writePagesJson(out, pages);
    return;
  }
  Table table({"CHECK", "COMMAND", "MEANING"});
  std::set<std::string> listed;
  for (const CheckPage& page : pages) {
    if (listed.insert(page.command + page.key).second) {
      table.add({{page.key}, {page.command}, {beginningOf(page.cause)}});
    }
  }
  table.write(out, style);
}

void writeCheckPages(std::ostream& out, const std::vector<CheckPage>& pages, const Style& style) {
  if (style.json) {
    writePagesJson(out, pages);
    return;
  }
  bool isFirst = true;
  for (const CheckPage& page : pages) {
    out << (isFirst ? "" : "\n");
    writePage(out, page, style);
    isFirst = false;
  }
}

void writeExplainHint(std::ostream& out, const std::string& key) {
  out << "`vfpass explain " << key << "` describes the first problem's check\n";
}

void writeExplainHint(std::ostream& out, const VerifyReport& report) {
  const Finding* problem = firstBroken(report);
  if (problem == nullptr) {
    const auto warning = std::ranges::find(report.findings, Outcome::warning, &Finding::outcome);
    problem = warning == report.findings.end() ? nullptr : &*warning;
  }
  if (problem != nullptr) {
    out << '\n';
    writeExplainHint(out, problem->key);
  }
}

}  // namespace vfpass::report
