#pragma once

#include <CLI/CLI.hpp>
#include <map>
#include <string>
#include <vector>

namespace vfpass::commands {

/// A word that can stand at the end of a command line.
struct Candidate {
  std::string text;
  std::string description;  ///< one line; may be empty
};

/// A command line whose last word is not finished, for the completion of shells. Reads the commands
/// and options of `root`, so that completion knows whatever the parser knows.
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

}  // namespace vfpass::commands
