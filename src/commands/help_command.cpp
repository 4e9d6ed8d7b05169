#include <algorithm>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "commands.hpp"
#include "usage_error.hpp"

namespace vfpass::commands {
namespace {

const CLI::App& describedCommand(const CLI::App& app, const std::vector<std::string>& words) {
  const CLI::App* found = &app;
  for (const std::string& word : words) {
    const auto commands = found->get_subcommands([](const CLI::App*) { return true; });
    const auto next = std::ranges::find(commands, word, &CLI::App::get_name);
    if (next == commands.end()) {
      throw unknownCommand(*found, word);
    }
    found = *next;
  }
  return *found;
}

// CLI::App::help() describes the selected command, which is `help`.
std::string helpText(const CLI::App& app, const std::vector<std::string>& words) {
  std::string name = app.get_name();
  for (const std::string& word : words) {
    name += " " + word;
  }
  return app.get_formatter()->make_help(&describedCommand(app, words), name,
                                        CLI::AppFormatMode::Normal);
}

ExitCode showVersion(Session& session) {
  if (session.options().json) {
    session.out()
        << nlohmann::ordered_json{{"schema_version", 1}, {"version", VFPASS_VERSION}}.dump(2)
        << '\n';
  } else {
    session.out() << "vfpass " VFPASS_VERSION "\n";
  }
  return ExitCode::done;
}

}  // namespace

void addHelp(CLI::App& app, Runner& runner) {
  auto* command = app.add_subcommand("help", "Describe a command: the same as `COMMAND --help`");
  const auto words = std::make_shared<std::vector<std::string>>();
  command->add_option("command", *words, "Such as attach, or host apply")->type_name("COMMAND");
  command->callback([&app, &runner, words] {
    runner = [&app, words](Session& session) {
      session.out() << helpText(app, *words);
      return ExitCode::done;
    };
  });
}

void addVersion(CLI::App& app, Runner& runner) {
  app.add_subcommand("version", "Print the version of vfpass")->callback([&runner] {
    runner = showVersion;
  });
}

}  // namespace vfpass::commands
