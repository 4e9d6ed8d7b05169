#include "incomplete_line.hpp"

#include <algorithm>
#include <sstream>

namespace vfpass::commands {
namespace {

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

}  // namespace

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

}  // namespace vfpass::commands
