#include "operation_log.hpp"

#include <pwd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <limits>
#include <ostream>
#include <utility>

#include "commands.hpp"
#include "vfpass/base/bounded_read.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/report/result_report.hpp"

namespace vfpass::commands {
namespace {

// The kernel's AUDIT_UID_UNSET: a process that no login started.
constexpr unsigned unset = std::numeric_limits<unsigned>::max();

std::optional<unsigned> parseUserId(std::string_view text) {
  const auto id = parseNumber(trim(text));
  return id && *id < unset ? std::optional(static_cast<unsigned>(*id)) : std::nullopt;
}

// Now, and not when the entry is read: by then the user may have been removed, and the ID have
// another owner.
std::string nameOfUser(unsigned id) {
  std::array<char, 16384> buffer{};
  passwd entry{};
  passwd* found = nullptr;
  ::getpwuid_r(id, &entry, buffer.data(), buffer.size(), &found);
  return found == nullptr ? std::to_string(id) : found->pw_name;
}

std::string readLoginUid() {
  constexpr std::size_t longest = 16;
  try {
    return readBoundedFile("/proc/self/loginuid", longest);
  } catch (const ReadRefused&) {  // a kernel without audit
    return {};
  }
}

}  // namespace

std::optional<unsigned> invokingUserId(const std::string& loginUid, const char* sudoUid) {
  const auto login = parseUserId(loginUid);
  return login || sudoUid == nullptr ? login : parseUserId(sudoUid);
}

std::optional<events::Invoker> invokingUser() {
  const auto id = invokingUserId(readLoginUid(), std::getenv("SUDO_UID"));
  return id ? std::optional(events::Invoker{nameOfUser(*id), *id}) : std::nullopt;
}

namespace {

constexpr const char* identifier = "vfpass";

events::Result resultOf(const Error& error) {
  switch (error.code()) {
    case ExitCode::refused:
      return events::Result::refused;
    case ExitCode::unverified:
      return events::Result::unverified;
    default:
      return events::Result::failed;
  }
}

}  // namespace

OperationLog::OperationLog(bool recording, bool stderrIsJournal, std::string socket)
    : recording_(recording), stderrIsJournal_(stderrIsJournal), socket_(std::move(socket)) {}

void OperationLog::begin(events::Operation operation, const std::string& vm) {
  current_.emplace();
  current_->operation = operation;
  current_->vm = vm;
}

void OperationLog::setDomain(const Uuid& domain, const std::string& name) {
  if (current_) {
    current_->domain = domain;
    current_->vm = name;
  }
}

void OperationLog::addDevices(const std::vector<Lease>& leases) {
  if (current_) {
    current_->addDevices(leases);
  }
}

void OperationLog::addPf(const PciAddress& pf) {
  if (current_) {
    current_->pfs.push_back(pf);
  }
}

bool OperationLog::failed(const Error& error) {
  return end({resultOf(error), error.what(), error.remedy()}) && stderrIsJournal_;
}

bool OperationLog::end(const events::Ending& ending) {
  const auto subject = std::exchange(current_, std::nullopt);
  return subject && send(*subject, ending);
}

void OperationLog::record(events::Operation operation, const Uuid& domain, const std::string& vm,
                          const events::Ending& ending) {
  events::Subject subject;
  subject.operation = operation;
  subject.vm = vm;
  subject.domain = domain == Uuid{} ? std::nullopt : std::optional(domain);
  static_cast<void>(send(subject, ending));
}

bool OperationLog::writeLine(events::Priority priority, const std::string& line) {
  const events::Subject* subject = current_ ? &*current_ : nullptr;
  return stderrIsJournal_ &&
         events::sendEntry(events::lineEntry(priority, line, subject, identifier), socket_.c_str());
}

bool OperationLog::send(const events::Subject& subject, const events::Ending& ending) const {
  if (!recording_) {
    return false;
  }
  events::Subject known = subject;
  known.invoker = invokingUser();
  return events::sendEntry(events::eventEntry(known, ending, identifier), socket_.c_str());
}

void printError(std::ostream& err, const Error& error) {
  // Messages contain names from XML, sysfs and libvirt.
  err << "vfpass: " << printableLines(error.what()) << '\n';
  if (!error.remedy().empty()) {
    err << "        " << printableLines(error.remedy()) << '\n';
  }
}

EndedRun runAndRecord(Session& session, const Runner& runner) {
  try {
    return {runner(session), std::nullopt};
  } catch (const Error& error) {
    session.progress().clear();
    session.endPager();
    const bool printed = session.operations().failed(error);
    if (!printed) {
      printError(session.err(), error);
    }
    if (session.options().json && !session.outputBegun()) {
      report::writeError(session.out(), error);
    }
    return {error.code(), error};
  } catch (const std::exception& error) {
    session.operations().end({events::Result::failed, error.what()});
    throw;
  }
}

}  // namespace vfpass::commands
