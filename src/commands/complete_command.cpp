#include <unistd.h>

#include <chrono>
#include <ostream>
#include <set>

#include "commands.hpp"
#include "incomplete_line.hpp"
#include "vfpass/base/default_deadlines.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/config/configuration.hpp"
#include "vfpass/report/check_pages.hpp"

namespace vfpass::commands {
namespace {

// Nobody waits longer for a completion. SIGALRM then ends the program, after what it has printed;
// only a file system that hangs takes so long.
constexpr std::chrono::seconds longest{3};

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
  ::alarm(static_cast<unsigned>(longest.count()));
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
