#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <iostream>
#include <iterator>
#include <string_view>
#include <vector>

#include "commands.hpp"
#include "usage_error.hpp"
#include "vfpass/base/own_process.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/error.hpp"
#include "vfpass/report/result_report.hpp"

namespace vfpass::commands {
namespace {

constexpr const char* exitCodes =
    "Exit codes: 0 done or nothing to do, 1 failed, 2 bad usage or configuration,\n"
    "3 changes pending or drift, 4 verification failed,\n"
    "5 refused (would disrupt a device in use), 6 unverified.";

void addGlobalOptions(CLI::App& app, commands::GlobalOptions& options) {
  app.add_option("--config-dir", options.configDirectory, "Directory of mappings and host.yaml")
      ->type_name("DIRECTORY")
      ->capture_default_str();
  app.add_option("--state-dir", options.stateDirectory, "Directory of leases and journal")
      ->type_name("DIRECTORY")
      ->capture_default_str();
  app.add_option("--run-dir", options.runDirectory, "Directory of locks")
      ->type_name("DIRECTORY")
      ->capture_default_str();
  app.add_option("--connect", options.connect,
                 "URI of libvirt (default: LIBVIRT_DEFAULT_URI or qemu:///system)")
      ->type_name("URI");
  app.add_option("--sysroot", options.sysroot, "Captured tree to read instead of this host")
      ->type_name("DIRECTORY")
      ->capture_default_str();
  app.add_flag("--json", options.json, "Print machine-readable output");
  app.add_flag("-v,--verbose", options.verbosity, "Print each step on stderr");
  app.add_flag("-q,--quiet", options.quiet, "Print only warnings and errors");
  app.add_option("--color", options.color, "Colored output: auto, always or never")
      ->type_name("WHEN")
      ->check(CLI::IsMember({"auto", "always", "never"}))
      ->capture_default_str();
  app.add_flag("--no-pager", options.noPager, "Print long output on a terminal without a pager");
  app.set_version_flag("-V,--version", "vfpass " VFPASS_VERSION, "Print the version and exit");
}

// With --json, standard output always has one document.
int endWith(const Error& error, bool json) {
  if (json) {
    report::writeError(std::cout, error);
    std::cout.flush();
  }
  printError(std::cerr, error);
  return static_cast<int>(error.code());
}

struct Command {
  std::string_view name;
  void (*add)(CLI::App& app, Runner& runner);
};

// In the order of the help text.
constexpr std::array commands{Command{"init", addInit},
                              Command{"edit", addEdit},
                              Command{"import", addImport},
                              Command{"check", addCheck},
                              Command{"plan", addPlan},
                              Command{"attach", addAttach},
                              Command{"detach", addDetach},
                              Command{"status", addStatus},
                              Command{"history", addHistory},
                              Command{"verify", addVerify},
                              Command{"guest-setup", addGuestSetup},
                              Command{"recover", addRecover},
                              Command{"gc", addGc},
                              Command{"quarantine", addQuarantine},
                              Command{"host", addHost},
                              Command{"pf", addPf},
                              Command{"vf", addVf},
                              Command{"topo", addTopo},
                              Command{"doctor", addDoctor},
                              Command{"diagnose", addDiagnose},
                              Command{"explain", addExplain},
                              Command{"metrics", addMetrics},
                              Command{"snapshot", addSnapshot},
                              Command{"hook", addHook},
                              Command{"observe", addObserve},
                              Command{"help", addHelp},
                              Command{"version", addVersion},
                              Command{"complete", addComplete}};

// The commands whose names are among the words, or all; `complete` and `help` look at all.
// Describing all options of all commands takes a third of the instructions of `vfpass topo` on a
// small host (docs/performance.md).
std::vector<Command> commandsAmong(const std::vector<std::string_view>& words) {
  std::vector<Command> among;
  std::ranges::copy_if(commands, std::back_inserter(among), [&](const Command& command) {
    return std::ranges::find(words, command.name) != words.end();
  });
  const bool looksAtAll = std::ranges::any_of(among, [](const Command& command) {
    return command.name == "complete" || command.name == "help";
  });
  return looksAtAll || among.empty() ? std::vector(commands.begin(), commands.end()) : among;
}

// `vfpass` alone is a question for the help. `json`: whether the command line asks for it.
int run(int argc, char** argv, const std::vector<Command>& known, bool json) {
  CLI::App app{"Give libvirt virtual machines their own ConnectX virtual functions.", "vfpass"};
  app.formatter(std::make_shared<HelpFormat>());
  app.footer(exitCodes);
  app.require_subcommand(1);
  app.fallthrough();
  commands::GlobalOptions options;
  Runner runner;
  addGlobalOptions(app, options);
  for (const Command& command : known) {
    command.add(app, runner);
  }
  try {
    if (argc < 2) {
      throw CLI::CallForHelp();
    }
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (known.size() < commands.size()) {  // the help or the error may name other commands
      return run(argc, argv, {commands.begin(), commands.end()}, json);
    }
    if (error.get_exit_code() != 0) {
      throw usageError(app, {argv + 1, argv + argc}, error);
    }
    return app.exit(error, std::cout, std::cerr);  // prints the help or the version
  }
  if (const auto error = emptyValue(app)) {
    throw *error;
  }
  Session session(options, std::cout, std::cerr);
  return static_cast<int>(runAndRecord(session, runner).code);
}

bool readerIsGone() {
  pollfd output{STDOUT_FILENO, POLLOUT, 0};
  return ::poll(&output, 1, 0) == 1 && (static_cast<unsigned>(output.revents) & POLLERR) != 0;
}

// The stream does not keep the system's reason: one more byte fails for the same one.
int faultOfStdout() { return ::write(STDOUT_FILENO, "\n", 1) < 0 ? errno : 0; }

// Incomplete output is an error, unless the reader has closed the pipe (`| head`).
void requireOutputWritten() {
  std::cout.flush();
  if (!std::cout && !readerIsGone()) {
    const int fault = faultOfStdout();
    throw Error(
        "cannot write the complete output to stdout" + (fault == 0 ? "" : ": " + errnoText(fault)),
        fault == EBADF ? "open stdout for writing, such as with `>/dev/null`"
                       : "check free space at its destination");
  }
}

}  // namespace
}  // namespace vfpass::commands

int main(int argc, char** argv) {
  vfpass::occupyClosedStreams();
  // A pipe closed by `| head`, a daemon or a helper must not kill this process during a change.
  std::signal(SIGPIPE, SIG_IGN);
  using namespace vfpass::commands;
  const std::vector<std::string_view> words{argv + std::min(argc, 1), argv + argc};
  const bool json = std::ranges::find(words, "--json") != words.end();
  try {
    const int code = run(argc, argv, commandsAmong(words), json);
    requireOutputWritten();
    return code;
  } catch (const vfpass::Error& error) {
    return endWith(error, json);
  } catch (const vfpass::Cancelled& cancelled) {
    std::cerr << "vfpass: " << vfpass::printableLines(cancelled.what()) << std::endl;
    vfpass::endBySignal(cancelled.signal());
  } catch (const std::exception& error) {
    std::cerr << "vfpass: internal error: " << vfpass::printable(error.what()) << '\n';
    return static_cast<int>(vfpass::ExitCode::failed);
  }
}
