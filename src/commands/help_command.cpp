#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
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

}  // namespace vfpass::commands
