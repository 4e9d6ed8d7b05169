#include "vfpass/session/operation_log.hpp"

#include <algorithm>
#include <utility>

#include "vfpass/session/invoking_user.hpp"

namespace vfpass::session {
namespace {

constexpr const char* program = "vfpass";

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
         events::sendEntry(events::lineEntry(priority, line, subject, program), socket_.c_str());
}

bool OperationLog::send(const events::Subject& subject, const events::Ending& ending) const {
  if (!recording_) {
    return false;
  }
  events::Subject known = subject;
  known.invoker = invokingUser();
  return events::sendEntry(events::eventEntry(known, ending, program), socket_.c_str());
}

}  // namespace vfpass::session
