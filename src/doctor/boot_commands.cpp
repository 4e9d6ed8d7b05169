#include "boot_commands.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <utility>

#include "vfpass/base/text.hpp"

namespace vfpass::doctor {
namespace {

constexpr std::array leadingWords{"if",   "elif",    "while", "until",    "then",
                                  "else", "do",      "!",     "sudo",     "pre-up",
                                  "up",   "post-up", "down",  "pre-down", "post-down"};

bool isWordLetter(char letter) {
  return std::isalnum(static_cast<unsigned char>(letter)) != 0 || letter == '_';
}

constexpr std::string_view operatorLetters = "=!+-:";

std::size_t endOfKey(std::string_view rule, std::size_t at) {
  for (bool braced = false; at < rule.size(); ++at) {
    braced = rule[at] == '{' || (braced && rule[at] != '}');
    if (!braced && (operatorLetters.find(rule[at]) != std::string_view::npos || rule[at] == '"')) {
      break;
    }
  }
  return at;
}

// The quotation mark at the end of a value; a backslash protects one within it.
std::size_t endOfValue(std::string_view rule, std::size_t at) {
  while (at < rule.size() && rule[at] != '"') {
    at += rule[at] == '\\' ? 2 : 1;
  }
  return std::min(at, rule.size());
}

std::string_view withoutComment(std::string_view text) {
  const auto at = std::min(text.find(" #"), text.find("\t#"));
  const bool quoted =
      at != std::string_view::npos && (std::ranges::count(text.substr(0, at), '"') % 2 == 1 ||
                                       std::ranges::count(text.substr(0, at), '\'') % 2 == 1);
  return quoted ? text : text.substr(0, at);
}

void eachUdevCommand(const LogicalLine& line, const Commands& use) {
  for (const UdevToken& token : udevTokens(line.text)) {
    if (token.key.starts_with("RUN") || token.key == "PROGRAM" || token.key == "IMPORT{program}") {
      use(line, token.value, token.valueAt);
    }
  }
}

// Environment= may hold the path that a command of the unit writes to.
void eachUnitCommand(const LogicalLine& line, const Commands& use) {
  const auto begin = line.text.find_first_not_of(" \t");
  const auto equals = line.text.find('=');
  const std::string_view text = line.text;
  if (equals != std::string::npos &&
      (text.substr(begin).starts_with("Exec") || text.substr(begin).starts_with("Environment="))) {
    use(line, text.substr(equals + 1), equals + 1);
  }
}

}  // namespace

std::vector<LogicalLine> logicalLines(std::string_view text) {
  std::vector<LogicalLine> lines;
  bool goesOn = false;
  std::size_t number = 0;
  for (const std::string& line : splitLines(text)) {
    ++number;
    if (!goesOn) {
      lines.push_back({number, {}});
    }
    goesOn = line.ends_with('\\');
    lines.back().text += goesOn ? line.substr(0, line.size() - 1) + '\v' : line;
  }
  std::erase_if(lines, [](const LogicalLine& line) {
    const auto begin = line.text.find_first_not_of(" \t\v");
    return begin == std::string::npos || line.text[begin] == '#' || line.text[begin] == ';';
  });
  return lines;
}

std::vector<std::size_t> placesOf(std::string_view text, std::string_view name) {
  std::vector<std::size_t> places;
  for (auto at = text.find(name); at != std::string_view::npos; at = text.find(name, at + 1)) {
    const auto end = at + name.size();
    const bool begins = at == 0 || !isWordLetter(text[at - 1]);
    const bool ends = name.ends_with('=') || end == text.size() || !isWordLetter(text[end]);
    if (begins && ends) {
      places.push_back(at);
    }
  }
  return places;
}

std::string programBefore(std::string_view text) {
  const auto separator = text.find_last_of(shellSeparators);
  text.remove_prefix(separator == std::string_view::npos ? 0 : separator + 1);
  while (true) {
    text.remove_prefix(std::min(text.find_first_not_of(shellBlanks), text.size()));
    const auto word = text.substr(0, text.find_first_of(shellBlanks));
    if (word.empty() || std::ranges::find(leadingWords, word) == leadingWords.end()) {
      return std::string(
          word.substr(word.rfind('/') == std::string_view::npos ? 0 : word.rfind('/') + 1));
    }
    text.remove_prefix(word.size());
  }
}

std::vector<UdevToken> udevTokens(std::string_view rule) {
  std::vector<UdevToken> tokens;
  std::size_t at = 0;
  while ((at = rule.find_first_not_of(" \t\v,", at)) != std::string_view::npos) {
    UdevToken token;
    token.keyAt = at;
    const auto keyEnd = endOfKey(rule, at);
    token.key = trim(rule.substr(at, keyEnd - at));
    const auto quote = std::min(rule.find('"', keyEnd), rule.size());
    const auto operation = trim(rule.substr(keyEnd, quote - keyEnd));
    token.assigns =
        !operation.starts_with("==") && !operation.starts_with("!=") && !operation.empty();
    token.valueAt = std::min(quote + 1, rule.size());
    const auto end = endOfValue(rule, token.valueAt);
    token.value = rule.substr(token.valueAt, end - token.valueAt);
    tokens.push_back(std::move(token));
    at = end + 1;
    if (at >= rule.size()) {
      break;
    }
  }
  return tokens;
}

void eachCommand(BootLanguage language, std::string_view text, const Commands& use) {
  for (const LogicalLine& line : logicalLines(text)) {
    switch (language) {
      case BootLanguage::udev:
        eachUdevCommand(line, use);
        break;
      case BootLanguage::unit:
        eachUnitCommand(line, use);
        break;
      case BootLanguage::modprobe:
        if (trim(line.text).starts_with("install ")) {
          use(line, line.text, 0);
        }
        break;
      case BootLanguage::shell:
        use(line, withoutComment(line.text), 0);
        break;
      case BootLanguage::tmpfiles:
      case BootLanguage::sysfs:
      case BootLanguage::yaml:
        break;
    }
  }
}

}  // namespace vfpass::doctor
