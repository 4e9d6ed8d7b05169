#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <ostream>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "commands.hpp"
#include "vfpass/base/default_deadlines.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/config/configuration.hpp"
#include "vfpass/report/check_pages.hpp"

namespace vfpass::commands {
namespace {

// A word that can stand at the end of a command line.
struct Candidate {
  std::string text;
  std::string description;  ///< one line; may be empty
};

// A command line whose last word is not finished, for the completion of shells. Reads the commands
// and options of `root`, so that completion knows whatever the parser knows.
class IncompleteLine {
 public:
  /// `words` without the program's name; the last one is incomplete and may be empty.
  IncompleteLine(const CLI::App& root, const std::vector<std::string>& words);

  /// Commands, options or fixed values that begin like the last word.
  [[nodiscard]] std::vector<Candidate> candidates() const;
  /// The type of the value that the last word is, such as `VM`, `PF` or `FILE`; empty if it is a
  /// command or an option.
  [[nodiscard]] std::string valueType() const;
  /// The value part of the last word: `0000:3b` of `--pf=0000:3b`.
  [[nodiscard]] const std::string& value() const { return value_; }
  /// What stands before the value in the same word: `--pf=`.
  [[nodiscard]] const std::string& before() const { return before_; }
  /// Whether a value that begins with `-` would be read as a value here: after `--` or `--pf=`.
  [[nodiscard]] bool takesDash() const { return onlyPositionals_ || !before_.empty(); }
  /// Whether the line's command is one of this command: `quarantine` of `quarantine release`.
  [[nodiscard]] bool isBelow(const std::string& command) const;
  /// The name of the command that the complete words name; empty before one.
  [[nodiscard]] std::string command() const;
  /// The value that the complete words give to an option such as `--sysroot`; `fallback` if none.
  [[nodiscard]] std::string given(const std::string& option, const std::string& fallback) const;

 private:
  void read(const std::string& word);
  void readOption(const std::string& word);
  void readLast(const std::string& word);
  [[nodiscard]] const CLI::Option* findOption(const std::string& name) const;
  [[nodiscard]] std::vector<Candidate> options() const;
  [[nodiscard]] std::vector<Candidate> commands() const;

  const CLI::App& root_;
  const CLI::App* command_;
  const CLI::Option* pending_ = nullptr;  ///< an option whose value comes next
  std::size_t positionals_ = 0;
  bool onlyPositionals_ = false;  ///< after `--`
  bool isOption_ = false;         ///< the last word is the name of an option
  std::map<std::string, std::string> given_;
  std::string before_;
  std::string value_;
};

bool takesValue(const CLI::Option& option) { return option.get_items_expected_max() > 0; }

bool isHidden(const std::string& group) { return group.empty(); }

// On one line.
std::string firstSentence(std::string text) {
  std::ranges::replace(text, '\n', ' ');
  return text.substr(0, text.find(". "));
}

// `FORMAT` of `FORMAT:{matrix,tree}`, which CLI11 makes of a type and its check. The colon of
// `[HOST:]VM` is not that one.
std::string nameOfType(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  return type.substr(0, type.find(':', type.starts_with('[') ? type.find(']') : 0));
}

// The values of `FORMAT:{matrix,tree}`; empty if any are allowed.
std::vector<std::string> fixedValues(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  const auto begin = type.find('{');
  const auto end = type.find('}');
  std::vector<std::string> values;
  if (begin == std::string::npos || end == std::string::npos) {
    return values;
  }
  std::istringstream list(type.substr(begin + 1, end - begin - 1));
  for (std::string value; std::getline(list, value, ',');) {
    values.push_back(value);
  }
  return values;
}

std::vector<const CLI::App*> commandsOf(const CLI::App& command) {
  return command.get_subcommands([](const CLI::App*) { return true; });
}

const CLI::App* findCommand(const CLI::App& parent, const std::string& name) {
  const auto all = commandsOf(parent);
  const auto found = std::ranges::find(all, name, &CLI::App::get_name);
  return found == all.end() ? nullptr : *found;
}

std::vector<const CLI::Option*> positionalsOf(const CLI::App& command) {
  return command.get_options([](const CLI::Option* option) { return option->get_positional(); });
}

IncompleteLine::IncompleteLine(const CLI::App& root, const std::vector<std::string>& words)
    : root_(root), command_(&root) {
  for (std::size_t i = 0; i + 1 < words.size(); ++i) {
    read(words[i]);
  }
  readLast(words.empty() ? "" : words.back());
}

void IncompleteLine::read(const std::string& word) {
  if (pending_ != nullptr) {
    given_[pending_->get_name()] = word;
    pending_ = nullptr;
  } else if (!onlyPositionals_ && word == "--") {
    onlyPositionals_ = true;
  } else if (!onlyPositionals_ && word.starts_with('-')) {
    readOption(word);
  } else if (const CLI::App* command = findCommand(*command_, word);
             command != nullptr && !onlyPositionals_) {
    command_ = command;
  } else {
    ++positionals_;
  }
}

void IncompleteLine::readOption(const std::string& word) {
  const auto equals = word.find('=');
  const CLI::Option* option = findOption(word.substr(0, equals));
  if (option == nullptr || !takesValue(*option)) {
    return;
  }
  if (equals == std::string::npos) {
    pending_ = option;
  } else {
    given_[option->get_name()] = word.substr(equals + 1);
  }
}

void IncompleteLine::readLast(const std::string& word) {
  value_ = word;
  if (pending_ != nullptr || onlyPositionals_ || !word.starts_with('-')) {
    return;
  }
  isOption_ = true;
  const auto equals = word.find('=');
  if (equals == std::string::npos) {
    return;
  }
  const CLI::Option* option = findOption(word.substr(0, equals));
  if (option != nullptr && takesValue(*option)) {
    pending_ = option;
    isOption_ = false;
    before_ = word.substr(0, equals + 1);
    value_ = word.substr(equals + 1);
  }
}

// The parser also accepts the options of the commands above.
const CLI::Option* IncompleteLine::findOption(const std::string& name) const {
  for (const CLI::App* command = command_; command != nullptr; command = command->get_parent()) {
    if (const CLI::Option* option = command->get_option_no_throw(name)) {
      return option;
    }
  }
  return nullptr;
}

std::vector<Candidate> IncompleteLine::options() const {
  std::vector<Candidate> all;
  for (const CLI::App* command = command_; command != nullptr; command = command->get_parent()) {
    for (const CLI::Option* option : command->get_options()) {
      const auto& names = option->get_lnames();  // after the first: names of earlier versions
      if (!names.empty() && !isHidden(option->get_group())) {
        all.push_back({"--" + names.front(), firstSentence(option->get_description())});
      }
    }
  }
  return all;
}

std::vector<Candidate> IncompleteLine::commands() const {
  std::vector<Candidate> all;
  if (positionals_ > 0) {  // after an unknown command
    return all;
  }
  for (const CLI::App* command : commandsOf(*command_)) {
    if (!isHidden(command->get_group())) {
      all.push_back({command->get_name(), firstSentence(command->get_description())});
    }
  }
  return all;
}

std::vector<Candidate> IncompleteLine::candidates() const {
  std::vector<Candidate> all;
  if (pending_ != nullptr) {
    for (const auto& value : fixedValues(*pending_)) {
      all.push_back({before_ + value, ""});
    }
  } else {
    all = isOption_ ? options() : commands();
  }
  const std::string begin = before_ + value_;  // such as `--pf=0000:3b`
  std::erase_if(all, [&](const Candidate& each) { return !each.text.starts_with(begin); });
  std::ranges::sort(all, {}, &Candidate::text);
  const auto same = [](const Candidate& one, const Candidate& other) {
    return one.text == other.text;  // each command has --help
  };
  all.erase(std::unique(all.begin(), all.end(), same), all.end());
  return all;
}

std::string IncompleteLine::valueType() const {
  if (pending_ != nullptr) {
    return nameOfType(*pending_);
  }
  const auto positionals = positionalsOf(*command_);
  return isOption_ || positionals_ >= positionals.size() ? ""
                                                         : nameOfType(*positionals[positionals_]);
}

bool IncompleteLine::isBelow(const std::string& command) const {
  const CLI::App* parent = command_ == nullptr ? nullptr : command_->get_parent();
  return parent != nullptr && parent->get_name() == command;
}

std::string IncompleteLine::command() const {
  return command_ == nullptr ? "" : command_->get_name();
}

std::string IncompleteLine::given(const std::string& option, const std::string& fallback) const {
  const auto found = given_.find(option);
  return found == given_.end() ? fallback : found->second;
}

// Nobody waits longer for a completion. SIGALRM then ends the program, after what it has printed;
// only a file system that hangs takes so long.
constexpr std::chrono::seconds longestCompletion{3};

commands::GlobalOptions optionsOf(const IncompleteLine& line, commands::GlobalOptions options) {
  options.configDirectory = line.given("--config-dir", options.configDirectory);
  options.stateDirectory = line.given("--state-dir", options.stateDirectory);
  options.sysroot = line.given("--sysroot", options.sysroot);
  options.connect = line.given("--connect", options.connect);
  return options;
}

class Names {
 public:
  Names(std::ostream& out, const IncompleteLine& line) : out_(out), line_(line) {}

  // A name that a shell, a terminal or our own parser could misread cannot be completed.
  void print(const std::string& name, const std::string& description) {
    const bool isOption = name.starts_with('-') && !line_.takesDash();
    if (!name.empty() && name.starts_with(line_.value()) && printable(name) == name && !isOption &&
        printed_.insert(name).second) {
      out_ << line_.before() << name << '\t' << description << '\n' << std::flush;
    }
  }

 private:
  std::ostream& out_;
  const IncompleteLine& line_;
  std::set<std::string> printed_;
};

void printVms(Session& session, Names& names) {
  for (const auto& mapping : session.configuration().mappings) {
    names.print(mapping.vm, "has a mapping");
  }
  for (const auto& domain : session.hypervisor().listDomains()) {
    names.print(domain.name, domain.active ? "running" : "shut off");
  }
}

void printPfs(Session& session, Names& names) {
  for (const auto& pf : session.inventory({}, {}).pfs) {
    names.print(pf.netdev(), toString(pf.address));
    names.print(toString(pf.address), pf.netdev());
    names.print(pf.rdmaDevice(), toString(pf.address));
  }
}

void printQuarantined(Session& session, Names& names) {
  for (const auto& each : session.quarantined()) {
    names.print(toString(each.device), "in quarantine");
  }
}

void printHandedOver(Session& session, Names& names) {
  for (const auto& each : session.readDatabase().handOvers()) {
    names.print(toString(each.record.device), "has records");
  }
}

void printCommands(const CLI::App& root, Names& names) {
  for (const CLI::App* command : root.get_subcommands([](const CLI::App*) { return true; })) {
    if (!command->get_group().empty()) {
      names.print(command->get_name(), "command");
    }
  }
}

void printChecks(Names& names) {
  for (const auto& page : report::allCheckPages()) {
    names.print(page.key, "check of " + page.command);
  }
}

// The files that the shell itself is to complete, see the scripts in completion/.
const char* filesFor(const std::string& type) {
  return type == "DIRECTORY" ? ":directories\n" : type.ends_with("FILE") ? ":files\n" : "";
}

ExitCode complete(Session& caller, const CLI::App& root, const std::vector<std::string>& words) {
  ::alarm(static_cast<unsigned>(longestCompletion.count()));
  const IncompleteLine line(root, words);
  const std::string type = line.valueType();
  std::ostream& out = caller.out();
  out << filesFor(type);
  for (const auto& candidate : line.candidates()) {
    out << candidate.text << '\t' << candidate.description << '\n';
  }
  out.flush();
  Session session(optionsOf(line, caller.options()), out, out);
  session.limitLibvirt(deadlines::completionAnswer);
  Names names(out, line);
  try {
    if (type.find("VM") != std::string::npos) {
      printVms(session, names);
    } else if (type == "PF") {
      printPfs(session, names);
    } else if (type == "DEVICE" && line.isBelow("quarantine") && line.command() == "records") {
      printHandedOver(session, names);
    } else if (type == "DEVICE" && line.isBelow("quarantine")) {
      printQuarantined(session, names);
    } else if (type == "DEVICE") {
      printPfs(session, names);
    } else if (type == "COMMAND") {
      printCommands(root, names);
    } else if (type == "CHECK") {
      printChecks(names);
    }
  } catch (const Error&) {  // the user would see an error message inside the line
  }
  return ExitCode::done;
}

}  // namespace

void addComplete(CLI::App& app, Runner& runner) {
  auto* command =
      app.add_subcommand("complete", "Print completions of a partial command line, for shells");
  command->group("");
  const auto words = std::make_shared<std::vector<std::string>>();
  command->add_option("words", *words, "Words after `vfpass`, the incomplete one last");
  command->callback([&app, &runner, words] {
    runner = [&app, words](Session& session) { return complete(session, app, *words); };
  });
}

}  // namespace vfpass::commands
