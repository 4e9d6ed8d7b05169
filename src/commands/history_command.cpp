#include <filesystem>

#include "commands.hpp"
#include "vfpass/base/default_deadlines.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/events/history.hpp"
#include "vfpass/host/program_output.hpp"
#include "vfpass/report/command_reports.hpp"

namespace vfpass::commands {
namespace {

// Enough for the largest --limit with texts and addresses of usual length.
constexpr std::size_t longestOutput = std::size_t{32} << 20U;

std::string outputOf(const std::vector<std::string>& command) {
  const auto output = host::programOutput(command, deadlines::journal, longestOutput);
  if (!output) {
    throw Error("cannot read the journal: cannot run " + command.front() +
                    ", or it took more than " + std::to_string(deadlines::journal.count()) +
                    " seconds",
                "install systemd, or restrict the time with --since");
  }
  if (output->size() > longestOutput) {
    throw Error("the journal has too many operations", "restrict them with --since or --limit");
  }
  return *output;
}

// journalctl reports a --since that it does not understand as `Failed to parse timestamp: x`
// (systemd, src/journal/journalctl.c).
Error unreadable(const std::string& remarks, const std::string& since) {
  if (!since.empty() && remarks.find("parse timestamp") != std::string::npos) {
    return Error("--since " + printable(since) + ": journalctl does not understand this time",
                 "write 2026-01-31, \"2026-01-31 14:00\", yesterday, or \"2 hours ago\": see "
                 "systemd.time(7)",
                 ExitCode::badInput);
  }
  return Error("cannot read the journal: " + printable(remarks),
               "check the options; run it as root or as a member of the group systemd-journal");
}

// Without a journal, journalctl prints nothing and succeeds, as if vfpass had never been used.
void requireJournal(const events::HistoryQuery& query) {
  std::vector<std::string> command{"/usr/bin/journalctl", "--no-pager", "--output=json",
                                   "--output-fields=MESSAGE_ID", "--lines=1"};
  if (!query.directory.empty()) {
    command.push_back("--directory=" + query.directory.string());
  }
  if (outputOf(command).find('{') == std::string::npos) {
    throw Error(query.directory.empty()
                    ? "this host has no journal: journalctl finds no entry"
                    : printable(query.directory.string()) + ": journalctl finds no entry",
                query.directory.empty()
                    ? "start systemd-journald: vfpass records operations only in the journal"
                    : "specify a directory with journal files");
  }
}

ExitCode showHistory(Session& session, events::HistoryQuery query) {
  if (session.options().sysroot != "/") {
    throw Error("history: not possible on a captured tree (--sysroot)",
                "omit --sysroot; --directory reads another host's journal", ExitCode::badInput);
  }
  if (!query.directory.empty()) {
    query.directory = std::filesystem::absolute(query.directory);
  }
  const events::History history = events::readHistory(outputOf(journalctlCommand(query)));
  if (history.operations.empty() && !history.remarks.empty()) {
    throw unreadable(join(history.remarks, "; "), query.since);
  }
  if (history.operations.empty()) {
    requireJournal(query);
  }
  for (const auto& remark : history.remarks) {
    session.warn("journalctl: " + printable(remark));
  }
  report::writeHistory(session.pagedOut(), history.operations, session.style());
  if (history.operations.size() == query.limit) {
    session.note("--limit " + std::to_string(query.limit) +
                 " is reached: there may be older operations");
  }
  return ExitCode::done;
}

}  // namespace

void addHistory(CLI::App& app, Runner& runner) {
  auto* command = app.add_subcommand(
      "history",
      "List operations on a VM from the systemd journal: when, by whom and with which\nresult");
  const auto query = std::make_shared<events::HistoryQuery>();
  command->add_option("vm", query->vm, "Domain name or UUID (default: all, and the host itself)")
      ->type_name("VM");
  command
      ->add_option("--since", query->since,
                   "Only operations since this time, in a form of journalctl, such as\n"
                   "2026-01-31, yesterday or \"2 hours ago\"")
      ->type_name("TIME");
  command->add_option("--limit", query->limit, "At most this many operations: the newest")
      ->type_name("NUMBER")
      ->check(CLI::Range(1, 100000))
      ->capture_default_str();
  command
      ->add_option("--directory", query->directory,
                   "Directory with journal files to read instead of this host's")
      ->type_name("DIRECTORY");
  command->callback([&runner, query] {
    runner = [query](Session& session) { return showHistory(session, *query); };
  });
}

}  // namespace vfpass::commands
