#include "watch.hpp"

#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <ctime>
#include <iostream>
#include <sstream>

#include "vfpass/base/call_within.hpp"
#include "vfpass/base/deadline.hpp"
#include "vfpass/base/own_process.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/report/result_report.hpp"

namespace vfpass::commands {
namespace {

constexpr const char* defaultSeconds = "2";
constexpr unsigned longestSeconds = 3600;
constexpr const char* clearScreen = "\x1b[H\x1b[2J";

std::chrono::seconds intervalOf(const std::string& text) {
  unsigned seconds = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, seconds);
  if (error != std::errc() || stop != end || seconds < 1 || seconds > longestSeconds) {
    throw Error("--watch=" + printable(text) + ": not a number of seconds",
                "specify 1 to " + std::to_string(longestSeconds) + ", as in --watch=5",
                ExitCode::badInput);
  }
  return std::chrono::seconds(seconds);
}

std::string timeNow() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  ::gmtime_r(&now, &parts);
  char text[32];
  const std::size_t size = std::strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S UTC", &parts);
  return {text, size};
}

// One reading in a session of its own, because a session keeps what it has read. Warnings are part
// of the text, but not of a document.
std::string readOnce(const GlobalOptions& options, const Runner& show) {
  std::ostringstream out;
  std::ostringstream warnings;
  Session session(options, out, options.json ? std::cerr : warnings);
  if (callsInProgress != 0) {  // abandoned by an earlier reading
    session.assumeSilence();
  }
  show(session);
  return out.str() + warnings.str();
}

std::string readAgain(const GlobalOptions& options, const Runner& show) {
  try {
    return readOnce(options, show);
  } catch (const Error& error) {
    if (options.json) {
      std::ostringstream document;
      report::writeError(document, error);
      return document.str();
    }
    return "vfpass: " + printableLines(withRemedy(error)) + '\n';
  }
}

std::size_t terminalRows() {
  winsize size{};
  return ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row > 0 ? size.ws_row : 24;
}

// False: nobody reads the output any more. poll(2) reports that whatever it is asked for.
bool waitForInterval(std::chrono::seconds interval) {
  const Deadline deadline(interval);
  while (!deadline.over()) {
    pollfd output{STDOUT_FILENO, 0, 0};
    if (::poll(&output, 1, deadline.pollTimeout()) == 1) {
      return false;
    }
  }
  return true;
}

}  // namespace

void addWatch(CLI::App& command, std::string& watch) {
  command
      .add_flag("--watch{" + std::string(defaultSeconds) + "}", watch,
                "Show it again and again until Ctrl-C, every 2 seconds or --watch=SECONDS")
      ->multi_option_policy(CLI::MultiOptionPolicy::Throw);
}

std::string clipped(const std::string& text, std::size_t rows) {
  const auto lines = static_cast<std::size_t>(std::ranges::count(text, '\n'));
  if (lines <= rows || rows == 0) {
    return text;
  }
  std::size_t end = 0;
  for (std::size_t line = 1; line < rows; ++line) {
    end = text.find('\n', end) + 1;
  }
  return text.substr(0, end) + "(" + std::to_string(lines - rows + 1) + " more lines)\n";
}

ExitCode showOrWatch(Session& session, const std::string& watch, const Runner& show) {
  if (watch.empty()) {
    return show(session);
  }
  const auto interval = intervalOf(watch);
  const GlobalOptions& options = session.options();
  const bool terminal = isScreen(STDOUT_FILENO) && !options.json;
  std::string shown;
  std::string text = readOnce(options, show);
  while (true) {
    if (terminal) {
      session.out() << clearScreen << "every " << watch << " s, " << timeNow()
                    << "; Ctrl-C ends it\n\n"
                    << clipped(text, terminalRows() - std::min<std::size_t>(terminalRows(), 3))
                    << std::flush;
    } else if (text != shown) {
      session.out() << (options.json ? "" : timeNow() + "\n") << text << (options.json ? "" : "\n")
                    << std::flush;
    }
    shown = std::move(text);
    if (!session.out() || !waitForInterval(interval)) {
      return ExitCode::done;
    }
    text = readAgain(options, show);
  }
}

}  // namespace vfpass::commands
