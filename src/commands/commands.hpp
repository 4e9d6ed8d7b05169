#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <iosfwd>
#include <optional>
#include <string>

#include "command_session.hpp"
#include "vfpass/error.hpp"

namespace vfpass::report {
struct PlanText;
}

namespace vfpass::commands {

using commands::Session;

/// The selected command; main runs it after parsing.
using Runner = std::function<ExitCode(Session&)>;

// Each function adds its command and options to `app`, and sets `runner` if the user selects the
// command. Every command has a file of its own.
void addEdit(CLI::App& app, Runner& runner);
void addCheck(CLI::App& app, Runner& runner);
void addPlan(CLI::App& app, Runner& runner);
void addAttach(CLI::App& app, Runner& runner);
void addDetach(CLI::App& app, Runner& runner);
void addStatus(CLI::App& app, Runner& runner);
void addRecover(CLI::App& app, Runner& runner);
void addHost(CLI::App& app, Runner& runner);
void addHostGuids(CLI::App& host, Runner& runner);  ///< its command `guids`
void addPf(CLI::App& app, Runner& runner);
void addVf(CLI::App& app, Runner& runner);
void addHook(CLI::App& app, Runner& runner);
void addVerify(CLI::App& app, Runner& runner);
void addObserve(CLI::App& app, Runner& runner);
void addGuestSetup(CLI::App& app, Runner& runner);
void addHistory(CLI::App& app, Runner& runner);
void addGc(CLI::App& app, Runner& runner);
void addQuarantine(CLI::App& app, Runner& runner);
void addTopo(CLI::App& app, Runner& runner);
void addDoctor(CLI::App& app, Runner& runner);
void addExplain(CLI::App& app, Runner& runner);
void addDiagnose(CLI::App& app, Runner& runner);
void addMetrics(CLI::App& app, Runner& runner);
void addInit(CLI::App& app, Runner& runner);
void addImport(CLI::App& app, Runner& runner);
void addSnapshot(CLI::App& app, Runner& runner);
void addHelp(CLI::App& app, Runner& runner);
void addVersion(CLI::App& app, Runner& runner);
void addComplete(CLI::App& app, Runner& runner);  ///< hidden; for the scripts in completion/

/// Formats help texts the same way with every release of CLI11, whose own formatter changes between
/// releases: the form of defaults in 2.4, names, titles, columns and empty lines in 2.5.
class HelpFormat : public CLI::FormatterBase {
 public:
  std::string make_help(const CLI::App* app, std::string name,
                        CLI::AppFormatMode mode) const override;
};

/// The examples in a command's help, one on each line; empty for the program itself.
std::string examplesOf(const CLI::App& command);

struct ScopeOptions;  // subject.hpp

/// `--output FILE` and `--no-xml`.
struct PlanOutput {
  std::string file;  ///< for the plan; may be empty
  bool noXml = false;
};

/// `plan` and `attach --dry-run`: shows what attach would change, and changes nothing.
ExitCode showPlan(Session& session, const std::string& vm, const ScopeOptions& options,
                  const PlanOutput& output);

/// The text of a plan of the command `attach` or `detach`: its last line names the command.
report::PlanText textOf(const PlanOutput& output, const std::string& command, const std::string& vm,
                        const ScopeOptions& scope);

/// Adds `--no-xml`.
void addNoXml(CLI::App& command, bool& noXml);

/// Adds `--live` and `--config`, for commands that change a domain.
void addScope(CLI::App& command, ScopeOptions& scope);

/// Adds `--dry-run`, `--output FILE` and `--plan FILE`.
void addSavedPlanOptions(CLI::App& command, bool& dryRun, std::string& output, std::string& plan);

/// Message and remedy of the error that ends a command.
void printError(std::ostream& err, const Error& error);

/// The end of a command.
struct EndedRun {
  ExitCode code = ExitCode::done;
  std::optional<Error> error;  ///< that has ended it; it has been printed
};

/// Runs the command. An Error ends its operation, has its entry in the journal, and is printed;
/// with --json it also becomes the document of a command that has not printed one. Other exceptions
/// end the operation, too, and pass through. In operation_log.cpp.
EndedRun runAndRecord(Session& session, const Runner& runner);

// terminal.cpp

/// Adds `--watch[=SECONDS]`, whose text goes into `watch`; empty: not given.
void addWatch(CLI::App& command, std::string& watch);

/// `show` once; with --watch again and again, each time with a new session: on a terminal the text
/// is replaced, elsewhere every text that differs from the one before is printed below its time,
/// with --json without it. Returns only if nobody reads the output any more; a signal ends the
/// process. A failure of the first time is thrown, a later one shown. Throws Error for a bad number
/// of seconds.
ExitCode showOrWatch(Session& session, const std::string& watch, const Runner& show);

// init_command.cpp

/// Throws (bad input) if --write would save what a captured tree has among the files of this host:
/// the addresses are another host's.
void requireTargetOfThisHost(const Session& session, const std::string& command);

/// Prints the file of a new mapping, and the commands that users run next, with this command's
/// `--config-dir`.
void reportCreatedMapping(Session& session, const std::string& file, const std::string& vm);

/// The same for a new host.yaml.
void reportCreatedHostPolicy(Session& session, const std::string& file);

}  // namespace vfpass::commands
