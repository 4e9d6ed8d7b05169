#include "vfpass/report/check_pages.hpp"

#include <algorithm>
#include <cctype>
#include <iterator>
#include <ostream>
#include <set>
#include <sstream>
#include <string>

#include "json.hpp"
#include "text_values.hpp"
#include "vfpass/base/text.hpp"

namespace vfpass::report {
namespace {

using Cells = std::vector<std::string>;

// `| a | b \| c |`: a bar behind a backslash belongs to the cell.
Cells cellsOf(std::string_view line) {
  Cells cells;
  std::string cell;
  for (std::size_t i = 1; i < line.size(); ++i) {
    if (line[i] == '\\' && i + 1 < line.size() && line[i + 1] == '|') {
      cell += line[++i];
    } else if (line[i] == '|') {
      cells.emplace_back(trim(cell));
      cell.clear();
    } else {
      cell += line[i];
    }
  }
  return cells;
}

bool isHeading(std::string_view line) { return line.starts_with('#'); }

std::size_t depthOf(std::string_view heading) {
  return std::min(heading.find_first_not_of('#'), heading.size());
}

std::string titleOf(std::string_view heading) {
  return std::string(trim(heading.substr(depthOf(heading))));
}

// GitHub's anchor of a heading: lower case, dashes for spaces, no punctuation.
std::string anchorOf(std::string_view heading) {
  std::string anchor;
  for (const char letter : titleOf(heading)) {
    const auto byte = static_cast<unsigned char>(letter);
    if (letter == ' ') {
      anchor += '-';
    } else if (std::isalnum(byte) != 0 || letter == '-' || letter == '_') {
      anchor += static_cast<char>(std::tolower(byte));
    }
  }
  return anchor;
}

// The keys in `` `driver`, `mac` ``.
std::vector<std::string> keysIn(const std::string& cell) {
  std::vector<std::string> keys;
  for (std::size_t begin = cell.find('`'); begin != std::string::npos;) {
    const std::size_t end = cell.find('`', begin + 1);
    if (end == std::string::npos) {
      break;
    }
    keys.push_back(cell.substr(begin + 1, end - begin - 1));
    begin = cell.find('`', end + 1);
  }
  return keys;
}

// The text with each link `[text](target)` replaced by its text; a target in another document
// follows in parentheses.
std::string withoutLinks(const std::string& text) {
  std::string plain;
  std::size_t at = 0;
  for (std::size_t middle = text.find("]("); middle != std::string::npos;
       middle = text.find("](", at)) {
    const std::size_t begin = text.rfind('[', middle);
    const std::size_t end = text.find(')', middle);
    if (begin == std::string::npos || begin < at || end == std::string::npos) {
      break;
    }
    const std::string name = text.substr(begin + 1, middle - begin - 1);
    const std::string target = text.substr(middle + 2, end - middle - 2);
    plain += text.substr(at, begin - at) + name;
    if (!target.starts_with('#') && target.find(name) == std::string::npos) {
      plain += " (" + target + ")";
    }
    at = end + 1;
  }
  return plain + text.substr(at);
}

// `acs` of `[below](#acs)`; empty without such a link.
std::string anchorIn(const std::string& row) {
  constexpr std::string_view link = "](#";
  const std::size_t begin = row.find(link);
  return begin == std::string::npos
             ? ""
             : row.substr(begin + link.size(), row.find(')', begin) - begin - link.size());
}

class DocumentReader {
 public:
  DocumentReader(const std::string& command, std::string_view document)
      : command_(command), lines_(splitLines(document)) {}

  std::vector<CheckPage> read() {
    for (const std::string& line : lines_) {
      if (isHeading(line)) {
        heading_ = titleOf(line);
      }
      if (!line.starts_with('|')) {
        table_ = Table::other;
      } else if (line.starts_with("| key |") || line.starts_with("| check |")) {
        table_ = Table::checks;
      } else if (line.starts_with("| checks | method |")) {
        table_ = Table::methods;
      } else if (line.starts_with("| `")) {
        readRow(line);
      }
    }
    for (const Cells& row : methods_) {
      addMethod(row);
    }
    return std::move(pages_);
  }

 private:
  enum class Table { other, checks, methods };

  void readRow(const std::string& line) {
    if (table_ == Table::checks) {
      addRow(line);
    } else if (table_ == Table::methods) {
      methods_.push_back(cellsOf(line));
      methods_.back().resize(3);
    }
  }

  void addMethod(const Cells& row) {
    const auto keys = keysIn(row[0]);
    for (CheckPage& page : pages_) {
      if (std::ranges::find(keys, page.key) != keys.end()) {
        page.method = withoutLinks(row[1]);
        page.remedy = page.remedy.empty() ? withoutLinks(row[2]) : page.remedy;
      }
    }
  }

  void addRow(const std::string& line) {
    Cells cells = cellsOf(line);
    cells.resize(3);
    const bool ofDoctor = command_ == "doctor";
    for (const std::string& key : keysIn(cells[0])) {
      pages_.push_back({key, command_, withoutLinks(cells[1]),
                        ofDoctor ? withoutLinks(cells[2]) : "",
                        ofDoctor ? "" : withoutLinks(cells[2]),
                        "docs/" + command_ + ".md, " + heading_, sectionAt(anchorIn(line))});
    }
  }

  // From the heading with this anchor to the next one that is not below it.
  [[nodiscard]] std::string sectionAt(const std::string& anchor) const {
    const auto begin = std::ranges::find_if(lines_, [&](const std::string& line) {
      return isHeading(line) && !anchor.empty() && anchorOf(line) == anchor;
    });
    if (begin == lines_.end()) {
      return {};
    }
    const auto end = std::find_if(std::next(begin), lines_.end(), [&](const std::string& line) {
      return isHeading(line) && depthOf(line) <= depthOf(*begin);
    });
    std::string text = withoutLinks(join({std::next(begin), end}, "\n"));
    return titleOf(*begin) + "\n\n" + std::string(trim(text)) + "\n";
  }

  const std::string& command_;
  std::vector<std::string> lines_;
  std::vector<CheckPage> pages_;
  std::string heading_;
  Table table_ = Table::other;
  std::vector<Cells> methods_;
};

}  // namespace

std::vector<CheckPage> readCheckPages(const std::string& command, std::string_view document) {
  return DocumentReader(command, document).read();
}

std::vector<CheckPage> allCheckPages() {
  auto pages = readCheckPages("doctor", doctorDocument());
  std::ranges::move(readCheckPages("verify", verifyDocument()), std::back_inserter(pages));
  return pages;
}

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
