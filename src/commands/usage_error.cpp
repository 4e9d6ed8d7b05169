#include "usage_error.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <regex>
#include <string>
#include <string_view>
#include <vector>

#include "vfpass/base/text.hpp"

namespace vfpass::commands {
namespace {

/// Words for our commands in virsh, Terraform, Incus, Kubernetes and git.
struct Synonym {
  std::string_view word;
  std::string_view command;
};

constexpr std::array synonyms{
    Synonym{"add", "attach"},       Synonym{"apply", "attach"},   Synonym{"create", "attach"},
    Synonym{"assign", "attach"},    Synonym{"remove", "detach"},  Synonym{"rm", "detach"},
    Synonym{"delete", "detach"},    Synonym{"destroy", "detach"}, Synonym{"undo", "detach"},
    Synonym{"list", "status"},      Synonym{"ls", "status"},      Synonym{"show", "status"},
    Synonym{"get", "status"},       Synonym{"diff", "plan"},      Synonym{"preview", "plan"},
    Synonym{"validate", "check"},   Synonym{"lint", "check"},     Synonym{"log", "history"},
    Synonym{"test", "verify"},      Synonym{"new", "init"},       Synonym{"rollback", "recover"},
    Synonym{"repair", "recover"},   Synonym{"cleanup", "gc"},     Synonym{"prune", "gc"},
    Synonym{"clean", "gc"},         Synonym{"info", "status"},    Synonym{"describe", "status"},
    Synonym{"logs", "history"},     Synonym{"topology", "topo"},  Synonym{"install", "hook"},
    Synonym{"setup", "guest-setup"}};

std::vector<std::string> namesOfCommands(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (!command->get_group().empty()) {  // not hidden
      names.push_back(command->get_name());
    }
  }
  return names;
}

std::optional<std::string> similarCommand(const CLI::App& above, const std::string& word) {
  const auto names = namesOfCommands(above);
  const auto* synonym = std::ranges::find(synonyms, std::string_view(word), &Synonym::word);
  if (synonym != synonyms.end() && std::ranges::find(names, synonym->command) != names.end()) {
    return std::string(synonym->command);
  }
  return similarWord(word, names);
}

std::string lookAtHelp(const CLI::App& command) {
  return "run `" + commandPath(command) + " --help`";
}

Error badUsage(const std::string& what, const std::string& remedy) {
  return Error(what, remedy, ExitCode::badInput);
}

// `--format` for `--format=svg`.
std::string optionName(const std::string& word) { return word.substr(0, word.find('=')); }

std::vector<std::string> acceptedOptions(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::App* app = &command; app != nullptr; app = app->get_parent()) {
    for (const CLI::Option* option : app->get_options([](const CLI::Option*) { return true; })) {
      if (const auto& longNames = option->get_lnames(); !longNames.empty()) {
        names.push_back("--" + longNames.front());  // the others are names of earlier versions
      }
    }
  }
  return names;
}

Error unknownOption(const CLI::App& command, const std::string& word) {
  const auto near = similarWord(word, acceptedOptions(command));
  return badUsage("unknown option " + printable(word) + " of `" + commandPath(command) + "`",
                  near ? "did you mean `" + *near + "`?" : lookAtHelp(command));
}

Error missingCommand(const CLI::App& command) {
  return badUsage(
      "`" + commandPath(command) + "` needs a command: " + join(namesOfCommands(command), ", "),
      lookAtHelp(command));
}

// Names the arguments that the command requires and did not get.
std::optional<Error> missingArgument(const CLI::App& command) {
  std::vector<std::string> missing;
  for (const CLI::Option* option : command.get_options(
           [](const CLI::Option* each) { return each->get_required() && each->count() == 0; })) {
    missing.push_back(option->get_positional() ? option->get_type_name() : option->get_name());
  }
  if (missing.empty()) {
    return std::nullopt;
  }
  return badUsage("`" + commandPath(command) + "` needs an argument: " + join(missing, " and "),
                  lookAtHelp(command));
}

// `--` only ends the options.
bool isWord(const std::string& word) { return word != "--"; }

bool isOption(const std::string& word) {
  return isWord(word) && word.size() > 1 && word.front() == '-';
}

std::optional<std::string> firstOf(const std::vector<std::string>& words,
                                   bool (*wanted)(const std::string&)) {
  const auto end = std::ranges::find(words, "--");
  const auto found = std::find_if(words.begin(), wanted == isOption ? end : words.end(), wanted);
  return found == words.end() || (wanted == isOption && found == end) ? std::nullopt
                                                                      : std::optional(*found);
}

// A value that an option or argument does not accept, or lacks.
bool isAboutValue(const CLI::ParseError& error) {
  return dynamic_cast<const CLI::ValidationError*>(&error) != nullptr ||
         dynamic_cast<const CLI::ConversionError*>(&error) != nullptr ||
         dynamic_cast<const CLI::ArgumentMismatch*>(&error) != nullptr;
}

// Up to CLI11 2.5, options judge their values before commands judge what they lack or exclude;
// since 2.6, after it. With this, each release reports the value first. Throws what the option
// throws.
void judgeValues(CLI::App& command) {
  for (CLI::Option* option : command.get_options([](const CLI::Option* each) {
         return each->count() != 0 && !each->get_callback_run();
       })) {
    option->run_callback();
  }
  for (CLI::App* selected : command.get_subcommands()) {
    judgeValues(*selected);
  }
}

// CLI11 leaves the names of hidden options out of its texts.
const CLI::Option* hiddenOption(const CLI::App& command,
                                const std::vector<std::string_view>& words) {
  for (const std::string_view word : words) {
    const auto* option = isOption(std::string(word))
                             ? command.get_option_no_throw(optionName(std::string(word)))
                             : nullptr;
    if (option != nullptr && option->get_group().empty()) {
      return option;
    }
  }
  return nullptr;
}

// CLI11 begins its text with the option, or with these words and the option. The parser also
// accepts the options of the commands above.
const CLI::Option* optionIn(const CLI::App& command, const std::vector<std::string_view>& words,
                            std::string_view text) {
  constexpr std::string_view conversion = "Could not convert: ";
  if (text.starts_with(conversion)) {
    text.remove_prefix(conversion.size());
  }
  const std::string name(text.substr(0, text.find_first_of(": =")));
  if (name.empty()) {
    return hiddenOption(command, words);
  }
  for (const CLI::App* app = &command; app != nullptr; app = app->get_parent()) {
    if (const CLI::Option* option = app->get_option_no_throw(name)) {
      return option;
    }
  }
  return nullptr;
}

std::string countOfValues(int count) {
  return count == 1 ? "one value" : std::to_string(count) + " values";
}

// A missing value, too many of them (an option that is specified twice), and one that the option
// does not accept.
std::string describeValue(const CLI::App& command, const std::vector<std::string_view>& words,
                          const CLI::ParseError& error) {
  const std::string_view text = error.what();
  const CLI::Option* option = optionIn(command, words, text);
  if (option == nullptr) {
    return printable(text);
  }
  const std::string name =
      option->get_lnames().empty() ? option->get_name() : "--" + option->get_lnames().front();
  const std::string type = readableType(option->get_type_name());
  const std::string values = printable(join(option->results(), " "));
  const int most = option->get_items_expected_max();
  // A flag for which `=VALUE` is optional has no other property that tells it from one without.
  const bool oneValue = option->get_multi_option_policy() == CLI::MultiOptionPolicy::Throw;
  if (most == 0 && !oneValue) {
    return name + " takes no value";
  }
  if (dynamic_cast<const CLI::ArgumentMismatch*>(&error) == nullptr) {
    return name + ": invalid value " + values + ", expected " + type;
  }
  return text.ends_with(" missing")
             ? name + " needs a value: " + type
             : name + " takes " + countOfValues(std::max(most, 1)) + ", not " +
                   std::to_string(option->count()) + ": " + values;
}

// CLI11 does not say which command left the word over: one before the name of the selected command
// belongs to vfpass itself.
Error unknownWord(const CLI::App& app, const CLI::App& command,
                  const std::vector<std::string_view>& words, const std::string& word) {
  const auto selected = app.get_subcommands();
  const auto isFirst = [&](std::string_view each) {
    return each == word || each == selected.front()->get_name();
  };
  if (selected.empty() || *std::ranges::find_if(words, isFirst) == word) {
    return unknownCommand(app, word);
  }
  if (!namesOfCommands(command).empty()) {
    return unknownCommand(command, word);
  }
  return badUsage("unexpected argument " + printable(word) + " of `" + commandPath(command) + "`",
                  lookAtHelp(command));
}

// The value of a flag is optional: `--watch=`.
bool isEmptyValue(const CLI::Option* option) {
  const auto& values = option->results();
  return option->get_items_expected_min() > 0 &&
         std::ranges::find(values, std::string()) != values.end();
}

Error emptyValueOf(const CLI::Option& option, const CLI::App& command) {
  const std::string type = readableType(option.get_type_name());
  const std::string fault = option.get_positional()
                                ? "the argument " + type + " is empty"
                                : "--" + option.get_lnames().front() + " needs a value: " + type;
  return badUsage("`" + commandPath(command) + "`: " + fault, lookAtHelp(command));
}

Error badValue(const CLI::App& command, const std::vector<std::string_view>& words,
               const CLI::ParseError& error) {
  return badUsage("`" + commandPath(command) + "`: " + describeValue(command, words, error),
                  lookAtHelp(command));
}

struct TypeForm {
  std::regex form;
  const char* readable;
};

}  // namespace

std::optional<std::string> similarWord(const std::string& word,
                                       const std::vector<std::string>& words) {
  return closestSpelling(word, words, word.size() < 5 ? 1 : 2);
}

std::string commandPath(const CLI::App& command) {
  const CLI::App* above = command.get_parent();
  return above == nullptr ? command.get_name() : commandPath(*above) + " " + command.get_name();
}

const CLI::App& selectedCommand(const CLI::App& app) {
  const auto selected = app.get_subcommands();
  return selected.empty() ? app : selectedCommand(*selected.back());
}

Error unknownCommand(const CLI::App& above, const std::string& word) {
  auto near = similarCommand(above, word);
  if (near == word) {  // behind `--`, which ends commands, too
    near.reset();
  }
  return badUsage(
      "unknown command `" + commandPath(above) + " " + printable(word) + "`",
      near ? "did you mean `" + commandPath(above) + " " + *near + "`?" : lookAtHelp(above));
}

Error usageError(CLI::App& app, const std::vector<std::string_view>& words,
                 const CLI::ParseError& error) {
  const CLI::App& command = selectedCommand(app);
  if (isAboutValue(error)) {
    return badValue(command, words, error);
  }
  try {
    judgeValues(app);
  } catch (const CLI::ParseError& wrongValue) {
    return badValue(command, words, wrongValue);
  }
  const std::vector<std::string> left = app.remaining(true);
  if (const auto option = firstOf(left, isOption)) {
    return unknownOption(command, optionName(*option));
  }
  if (const auto word = firstOf(left, isWord)) {
    return unknownWord(app, command, words, *word);
  }
  if (!namesOfCommands(command).empty()) {
    return missingCommand(command);
  }
  if (auto missing = missingArgument(command)) {
    return *missing;
  }
  return badUsage("`" + commandPath(command) + "`: " + printable(error.what()),
                  lookAtHelp(command));
}

std::optional<Error> emptyValue(const CLI::App& app) {
  const CLI::App& selected = selectedCommand(app);
  if (selected.get_group().empty()) {  // hidden: `complete`, whose last word may be empty
    return std::nullopt;
  }
  for (const CLI::App* command = &selected; command != nullptr; command = command->get_parent()) {
    const auto given = command->get_options(isEmptyValue);
    if (!given.empty()) {
      return emptyValueOf(*given.front(), selected);
    }
  }
  return std::nullopt;
}

// Also `UINT:SIZE [b, kb(=1024b), ...]` and `NUMBER:POSITIVE`.
std::string readableType(const std::string& type) {
  static const std::array forms{
      TypeForm{std::regex(R"([A-Z]+:\{(.*)\})"), "$1"},
      TypeForm{std::regex(R"(([A-Z]+):[A-Z]+ in \[(\S+) - (\S+)\])"), "$1 ($2-$3)"},
      TypeForm{std::regex(R"([A-Z]+:(SIZE).*)"), "$1"},
      TypeForm{std::regex(R"(([A-Z]+):[A-Z]+)"), "$1"}};
  for (const TypeForm& each : forms) {
    if (std::regex_match(type, each.form)) {
      std::string readable = std::regex_replace(type, each.form, each.readable);
      std::ranges::replace(readable, ',', '|');
      return readable;
    }
  }
  return type;
}

}  // namespace vfpass::commands
