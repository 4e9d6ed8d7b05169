#include "vfpass/report/check_pages.hpp"

#include <algorithm>
#include <cctype>
#include <iterator>

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

}  // namespace vfpass::report
