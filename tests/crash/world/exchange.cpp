#include "world/exchange.hpp"

#include <algorithm>
#include <cerrno>
#include <limits>

#include "vfpass/base/text.hpp"

namespace vfpass::crash {
namespace {

bool isOfLibvirt(ChangeClass changeClass) {
  return changeClass == ChangeClass::libvirt || changeClass == ChangeClass::query;
}

constexpr const char* connectionLost = "connection to the daemon lost";

}  // namespace

Message failureOf(ChangeClass changeClass, int error, const std::string& message) {
  return {isOfLibvirt(changeClass) ? "injected: " + message : std::to_string(error)};
}

std::string describe(const Message& request) {
  std::string line = request.at(0);
  if (line == "set") {
    for (std::size_t at = 2; at + 1 < request.size(); at += 2) {
      line += " vf" + request[at];
      const auto settings = valueOf<VfSettings>(request[at + 1]);
      for (const Attribute attribute : differingAttributes(settings, {})) {
        line +=
            ' ' + std::string(toString(attribute)) + '=' + vfpass::describe(settings, attribute);
      }
    }
    return line;
  }
  for (std::size_t at = 1; at < request.size(); ++at) {
    line += ' ' + std::string(trim(request[at])).substr(0, 70);
  }
  std::replace(line.begin(), line.end(), '\n', ' ');
  return line;
}

bool Exchange::counts(ChangeClass changeClass) const {
  if (fault_.only) {
    return changeClass == *fault_.only;
  }
  return changeClass == ChangeClass::kernel || changeClass == ChangeClass::libvirt ||
         changeClass == ChangeClass::file;
}

bool Exchange::fires(ChangeClass changeClass, long first) {
  if (fault_.mode == FaultMode::none || fault_.at < 0) {
    return false;
  }
  if (!counts(changeClass)) {
    // A daemon that died at a query does not execute changes, either, and one that died after a
    // change answers no query.
    return isOfLibvirt(changeClass) && result_.fired &&
           ((fault_.mode == FaultMode::errorFrom && fault_.only == ChangeClass::query) ||
            fault_.mode == FaultMode::lastEffect);
  }
  const bool lasts = fault_.mode == FaultMode::errorFrom || fault_.mode == FaultMode::lastEffect ||
                     fault_.mode == FaultMode::freeze;
  return fault_.at <= result_.points && (lasts || fault_.at >= first);
}

// SQLite syncs the WAL before a commit returns. The index of the WAL (-shm) is rebuilt after a
// crash and never synced.
void Exchange::trackJournal(const Message& request) {
  const std::string& call = request.at(1);
  const std::string& path = request.at(2);
  if (call == "fsync" || call == "fdatasync" || call == "unlink") {
    unsynced_.erase(path);
  } else if (path.find("/vfpass.db") != std::string::npos && !path.ends_with("-shm") &&
             (call == "write" || call == "pwrite" || call == "ftruncate")) {
    unsynced_.insert(path);
  }
}

void Exchange::record(const Message& request, ChangeClass changeClass, long number) {
  if (changeClass == ChangeClass::file) {
    trackJournal(request);
  } else if (!unsynced_.empty() &&
             (changeClass == ChangeClass::kernel || changeClass == ChangeClass::libvirt)) {
    result_.unjournaled.push_back(describe(request) + " before the sync of " + *unsynced_.begin());
  }
  if (changeClass != ChangeClass::start && changeClass != ChangeClass::query) {
    result_.changes.push_back(std::to_string(number) + ' ' + describe(request));
  }
}

void Exchange::completeLater(const Message& request, int requests) {
  if (deviceOf(request)) {
    world_.kernel.postpone(request, requests);
  } else if (fault_.mode == FaultMode::killLate) {
    world_.change(request);
  }
}

std::optional<Message> Exchange::injectFault(const Message& request, ChangeClass changeClass,
                                             long first) {
  const bool effective = changeClass == ChangeClass::kernel || changeClass == ChangeClass::libvirt;
  switch (fault_.mode) {
    case FaultMode::killLate:
      completeLater(request, fault_.delay);
      return std::nullopt;
    case FaultMode::error:
    case FaultMode::errorFrom:
      if (request.at(0) == "set") {
        world_.change(request, PartialFailure{fault_.at - first, fault_.error});
      }
      return failureOf(
          changeClass, fault_.error,
          changeClass == ChangeClass::query ? connectionLost : errnoText(fault_.error));
    case FaultMode::errorAfter:
      if (effective) {
        world_.change(request);
      }
      return failureOf(changeClass, fault_.error, connectionLost);
    case FaultMode::lastEffect:
      if (effective && first == fault_.at) {
        world_.change(request);
      }
      return failureOf(changeClass, fault_.error, connectionLost);
    case FaultMode::hang:
      completeLater(request, std::numeric_limits<int>::max());
      return failureOf(changeClass, ETIMEDOUT, "timed out");
    case FaultMode::freeze:
    case FaultMode::kill:
    case FaultMode::none:
      break;
  }
  return std::nullopt;
}

std::optional<Message> Exchange::serve(const Message& request) {
  if (request.at(0) == "lock" || request.at(0) == "attempt" || request.at(0) == "sleep") {
    return Message{""};
  }
  world_.disk.settle();
  world_.kernel.countTowardsPending(request);
  const ChangeClass changeClass = classOf(request);
  if (changeClass == ChangeClass::none) {
    return world_.read(request);
  }
  const long first = result_.points + 1;
  if (counts(changeClass)) {
    result_.points += fault_.mode == FaultMode::error ? attributesIn(request) : 1;
  }
  record(request, changeClass, first);
  if (fires(changeClass, first)) {
    result_.fired = true;
    result_.faulted = describe(request);
    return injectFault(request, changeClass, first);
  }
  if (changeClass == ChangeClass::query) {
    return world_.read(request);
  }
  if (changeClass == ChangeClass::kernel || changeClass == ChangeClass::libvirt) {
    return world_.change(request);
  }
  if (changeClass == ChangeClass::file) {
    world_.disk.begin(request);
  }
  return Message{"0"};
}

}  // namespace vfpass::crash
