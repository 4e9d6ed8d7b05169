#include "yaml_reader.hpp"

#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <array>
#include <sstream>
#include <utility>

#include "text_checks.hpp"
#include "tree_builder.hpp"

namespace vfpass::config {
namespace {

// yaml-cpp's messages and our replacements.
constexpr std::array<std::pair<std::string_view, std::string_view>, 7> phrases{{
    {"illegal map value", "unexpected `:`: no value can begin here"},
    {"illegal map key", "unexpected `?` or key: no key can begin here"},
    {"end of map not found", "this line does not belong to the block of keys above it"},
    {"end of sequence not found", "this line does not belong to the list above it"},
    {"unknown token", "this character cannot begin a value"},
    {"the referenced anchor is not defined", "aliases (`*name`) are not accepted"},
    {"illegal block entry", "unexpected `-`: no list can begin here"},
}};

bool isIndentedByTab(const std::string& text, const YAML::Mark& mark) {
  std::size_t at = std::min(static_cast<std::size_t>(std::max(mark.pos, 0)), text.size());
  while (at > 0 && text[at - 1] != '\n') {
    --at;
  }
  const std::size_t end = text.find_first_not_of(" \t", at);
  return text.substr(at, end - at).find('\t') != std::string::npos;
}

void reportSyntax(const YAML::Exception& error, const std::string& text, const LineIndex& lines,
                  const TreeBuilder& builder, ProblemList& problems) {
  if (error.msg.find("flow not found") != std::string::npos && builder.openBracket()) {
    problems.add(*builder.openBracket(), "this bracket is never closed");
    return;
  }
  std::string message = "invalid YAML: " + error.msg;
  for (const auto& [theirs, ours] : phrases) {
    if (error.msg == theirs) {
      message = ours;
    }
  }
  problems.add(lines.positionOf(error.mark.pos), message,
               isIndentedByTab(text, error.mark) ? "indent with spaces, not tabs"
                                                 : "check quotes, brackets and indentation");
}

bool isBlank(const std::optional<Node>& root) {
  return !root || (root->kind == NodeKind::null && !root->refused);
}

}  // namespace

std::optional<Node> readYaml(const std::string& text, ProblemList& problems) {
  const LineIndex lines(text);
  if (const auto fault = checkFileText(text)) {
    problems.add(lines.positionOf(static_cast<long>(fault->offset)), fault->message, fault->hint);
    return std::nullopt;
  }
  TreeBuilder builder(text, lines, problems);
  std::istringstream stream(text);
  try {
    YAML::Parser parser(stream);
    while (parser.HandleNextDocument(builder)) {
    }
  } catch (const YAML::Exception& error) {
    reportSyntax(error, text, lines, builder, problems);
    return std::nullopt;
  } catch (const StopReading&) {
    return std::nullopt;
  }
  auto root = builder.takeRoot();
  if (isBlank(root)) {
    problems.add({}, "the file is empty", "begin it with `version: 1`");
    return std::nullopt;
  }
  return root;
}

}  // namespace vfpass::config
