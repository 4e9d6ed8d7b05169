#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <iostream>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "commands.hpp"
#include "usage_error.hpp"
#include "vfpass/base/text.hpp"

namespace vfpass::commands {
namespace {

struct Examples {
  std::string_view command;  ///< with the command above it: `host apply`
  std::string_view lines;    ///< without the program's name: `vfpass ` begins each line
};

// In the order of the help text. tests/cli/cases/help-examples checks each line.
constexpr std::array examples{
    Examples{"init",
             "init train0 --gpus 2 --vfs 2                  # propose two pairs of GPU and VF\n"
             "init train0 --gpus 1 --write                  # save it as vms/train0.yaml\n"
             "init train0 --gpus 1 --json                   # with the reasons, for a program\n"},
    Examples{"edit", "edit train0\n"},
    Examples{"import",
             "import train0                                 # a mapping for what it has already\n"
             "import train0 --write                         # save it\n"
             "import --host                                 # host.yaml for what the host has\n"},
    Examples{
        "check",
        "check                                         # all mappings\n"
        "check train0                                  # only this VM's\n"
        "check ./train0.yaml                           # a file, without looking at the host\n"},
    Examples{"plan",
             "plan train0\n"
             "plan train0 --output train0.plan              # for a later attach\n"},
    Examples{"attach",
             "attach train0\n"
             "attach train0 --config                        # for the next start only\n"
             "attach train0 --plan train0.plan              # if the plan is still the same\n"
             "attach --all                                  # every VM that has a mapping\n"},
    Examples{"detach",
             "detach train0\n"
             "detach train0 --timeout 300                   # a guest that is slow to release\n"
             "detach train0 --keep                          # the VM keeps its devices\n"
             "detach --all --dry-run                        # show the changes for every VM\n"},
    Examples{"status",
             "status\n"
             "status train0 --json\n"},
    Examples{"history",
             "history train0\n"
             "history train0 --since yesterday --json\n"
             "history --limit 20                            # of all VMs and the host\n"},
    Examples{"verify",
             "verify train0\n"
             "verify train0 --minimum-bandwidth 90%         # fail below 90 % of the limit\n"
             "verify train0 --peer train1 --all-pairs       # between two VMs of this host\n"
             "verify train0 --peer host2:train0             # with a VM of another host\n"
             "verify train0 --html report.html\n"
             "verify --all                                  # every running VM that has leases\n"},
    Examples{"guest-setup",
             "guest-setup train0 --dry-run                  # show the changes\n"
             "guest-setup train0\n"
             "guest-setup train0 --undo\n"},
    Examples{"recover", "recover\n"},
    Examples{"gc",
             "gc --dry-run                                  # show the changes\n"
             "gc\n"},
    Examples{"quarantine",
             "quarantine list\n"
             "quarantine release 0000:3b:00.2               # once the cause is found\n"},
    Examples{"quarantine list", "quarantine list\n"},
    Examples{"quarantine records", "quarantine records 0000:3b:00.2\n"},
    Examples{"quarantine release", "quarantine release 0000:3b:00.2\n"},
    Examples{"host",
             "host show\n"
             "host apply --dry-run\n"},
    Examples{"host show", "host show --json\n"},
    Examples{"host apply",
             "host apply --dry-run                          # show the changes\n"
             "host apply\n"
             "host apply --dry-run --output host.plan       # save the plan\n"
             "host apply --plan host.plan                   # execute it, if it is still the same\n"
             "host apply --only soft-roce\n"},
    Examples{"host guids",
             "host guids\n"
             "host guids --format opensm --p-key 0x8001 --vm train0 >train0.conf\n"
             "host guids --format csv >guids.csv\n"},
    Examples{"pf", "pf list\n"},
    Examples{"pf list", "pf list --json\n"},
    Examples{"vf", "vf list\n"},
    Examples{"vf list", "vf list --pf ens1f0np0\n"},
    Examples{"topo",
             "topo\n"
             "topo --format tree\n"
             "topo --format svg >host.svg                   # a picture\n"
             "topo --vm train0 --format nccl >topology.xml  # for NCCL_TOPO_FILE in the guest\n"},
    Examples{"doctor",
             "doctor\n"
             "doctor --vm train0                            # only what this VM needs\n"
             "doctor --all                                  # every check and what it found\n"},
    Examples{"diagnose",
             "diagnose train0\n"
             "diagnose train0 --json\n"},
    Examples{"explain",
             "explain                                       # all checks of doctor and verify\n"
             "explain pf-link\n"},
    Examples{"metrics",
             "metrics\n"
             "metrics --output /var/lib/prometheus/node-exporter/vfpass.prom\n"},
    Examples{
        "snapshot",
        "snapshot ./host\n"
        "topo --sysroot ./host                         # on any machine, from that snapshot\n"
        "snapshot host.tar                             # one file: extract it for --sysroot\n"},
    Examples{"hook",
             "hook install\n"
             "hook remove\n"},
    Examples{"hook install",
             "hook install --dry-run                        # show the changes\n"
             "hook install\n"},
    Examples{"hook remove",
             "hook remove --dry-run                         # do leases prevent it?\n"
             "hook remove\n"},
    Examples{"observe",
             "observe                                       # vfpass calls it over ssh\n"},
    Examples{"help",
             "help attach\n"
             "help host apply\n"},
    Examples{"version", "version\n"}};

}  // namespace

std::string examplesOf(const CLI::App& command) {
  const auto* found = std::ranges::find_if(examples, [&](const Examples& each) {
    return commandPath(command) == "vfpass " + std::string(each.command);
  });
  std::string text;
  if (command.get_parent() == nullptr || found == examples.end()) {
    return text;
  }
  std::string_view rest = found->lines;
  while (!rest.empty()) {
    const auto end = rest.find('\n') + 1;
    text += "  vfpass " + std::string(rest.substr(0, end));
    rest.remove_prefix(end);
  }
  return text;
}

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
