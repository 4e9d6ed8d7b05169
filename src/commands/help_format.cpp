#include <CLI/CLI.hpp>
#include <algorithm>
#include <iterator>
#include <set>
#include <string>
#include <vector>

#include "commands.hpp"
#include "usage_error.hpp"
#include "vfpass/base/text.hpp"

namespace vfpass::commands {
namespace {

using ShownOptions = std::vector<const CLI::Option*>;

constexpr std::size_t leftColumnWidth = 30;

bool isFlag(const CLI::Option& option) { return option.get_items_expected_max() == 0; }

bool takesMany(const CLI::Option& option) {
  return option.get_expected_max() == CLI::detail::expected_max_vector_size;
}

// Such as ` DIRECTORY=/etc/vfpass` or ` COMMAND ...`.
std::string valueText(const CLI::Option& option) {
  std::string text =
      option.get_type_name().empty() ? "" : " " + readableType(option.get_type_name());
  if (!option.get_default_str().empty()) {
    text += "=" + option.get_default_str();
  }
  return text + (takesMany(option) ? " ..." : "") + (option.get_required() ? " REQUIRED" : "");
}

// An argument by the name of its type: `VM`, as in `Usage:`. An option by its short name and its
// first long one: the others are names of earlier versions.
std::string namesOf(const CLI::Option& option) {
  if (option.get_positional()) {
    return option.get_type_name();
  }
  std::vector<std::string> names;
  std::ranges::transform(option.get_snames(), std::back_inserter(names),
                         [](const std::string& letter) { return "-" + letter; });
  if (!option.get_lnames().empty()) {
    names.push_back("--" + option.get_lnames().front());
  }
  return join(names, ",");
}

std::string leftText(const CLI::Option& option) {
  if (option.get_positional()) {
    return namesOf(option) + (option.get_required() ? " REQUIRED" : "");
  }
  if (!option.get_option_text().empty()) {
    return namesOf(option) + " " + option.get_option_text();
  }
  return namesOf(option) + (isFlag(option) ? "" : valueText(option));
}

// Such as `; needs --dry-run` and `; not with --plan, --output`.
std::string conditionOf(const char* words, const std::set<CLI::Option*>& options) {
  std::vector<std::string> names;
  std::ranges::transform(options, std::back_inserter(names),
                         [](const CLI::Option* option) { return option->get_name(); });
  std::ranges::sort(names);  // the set is in the order of addresses
  return names.empty() ? "" : std::string("; ") + words + " " + join(names, ", ");
}

// With the condition under which the option applies, in words.
std::string descriptionOf(const CLI::Option& option) {
  constexpr std::size_t width = 80;
  std::string text = option.get_description();
  for (const std::string& condition :
       {conditionOf("needs", option.get_needs()), conditionOf("not with", option.get_excludes())}) {
    if (condition.empty()) {
      continue;
    }
    const std::size_t line = text.size() - (text.rfind('\n') + 1);
    const bool fits = line + condition.size() <= width;
    text += fits ? condition : ";\n" + condition.substr(2);
  }
  return text;
}

// The right column begins on the next line if the left one does not fit.
std::string columns(const std::string& left, const std::string& right) {
  const std::string indentation(leftColumnWidth, ' ');
  std::string text = "  " + left;
  if (right.empty()) {
    return text + "\n";
  }
  text += text.size() < leftColumnWidth ? indentation.substr(text.size()) : "\n" + indentation;
  for (const char each : right) {
    text += each == '\n' ? "\n" + indentation : std::string(1, each);
  }
  return text + "\n";
}

std::string section(const std::string& title, const ShownOptions& options) {
  std::string text;
  for (const CLI::Option* option : options) {
    text += columns(leftText(*option), descriptionOf(*option));
  }
  return text.empty() ? text : "\n" + title + ":\n" + text;
}

// A hidden option has an empty group. CLI11's own group is `Options`, and since 2.5 `OPTIONS`.
std::string sections(const CLI::App& app) {
  std::string text = section("Positionals", app.get_options([](const CLI::Option* option) {
    return option->get_positional() && !option->get_group().empty();
  }));
  for (const std::string& group : app.get_groups()) {
    const auto belongs = [&group](const CLI::Option* option) {
      return option->nonpositional() && option->get_group() == group;
    };
    if (!group.empty()) {
      text += section(group == "OPTIONS" ? "Options" : group, app.get_options(belongs));
    }
  }
  return text;
}

std::vector<const CLI::App*> shownCommands(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App* each) { return !each->get_group().empty(); });
}

std::string commandSection(const CLI::App& app) {
  std::string text;
  for (const CLI::App* command : shownCommands(app)) {
    text += columns(command->get_name(), command->get_description());
  }
  return text.empty() ? text : "\nSubcommands:\n" + text;
}

std::string usage(const CLI::App& app, const std::string& name) {
  std::string text = "Usage: " + name + " [OPTIONS]";
  for (const CLI::Option* option :
       app.get_options([](const CLI::Option* each) { return each->get_positional(); })) {
    const std::string argument = option->get_type_name() + (takesMany(*option) ? "..." : "");
    text += " " + (option->get_required() ? argument : "[" + argument + "]");
  }
  return text + (shownCommands(app).empty() ? "" : " SUBCOMMAND") + "\n";
}

// What the help does not show: of the program that of its commands, of a command the options of
// all.
std::string elsewhere(const CLI::App& app) {
  return app.get_parent() == nullptr
             ? "More help: `vfpass help COMMAND`, and manual pages such as `man vfpass-attach`\n"
             : "Global options: `vfpass --help` lists those of every command, such as --json\n";
}

std::string exampleSection(const CLI::App& app) {
  const std::string lines = examplesOf(app);
  return lines.empty() ? lines : "\nExamples:\n" + lines;
}

}  // namespace

std::string HelpFormat::make_help(const CLI::App* app, std::string name,
                                  CLI::AppFormatMode /*mode*/) const {
  return app->get_description() + "\n" + usage(*app, name) + sections(*app) + commandSection(*app) +
         exampleSection(*app) + "\n" + elsewhere(*app) + "\n" + app->get_footer() + "\n";
}

}  // namespace vfpass::commands
