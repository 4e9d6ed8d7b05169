#pragma once

#include <optional>
#include <set>
#include <string>

#include "world/fault.hpp"
#include "world/world.hpp"

namespace vfpass::crash {

/// The requests of one worker: counts its changes, injects the fault, and checks that the journal
/// is on disk before every change of the kernel or of libvirt.
class Exchange {
 public:
  Exchange(World& world, const Fault& fault) : world_(world), fault_(fault) {}

  /// Returns the reply. nullopt: the worker has to be killed now.
  std::optional<Message> serve(const Message& request);

  [[nodiscard]] const Result& result() const { return result_; }

 private:
  bool counts(ChangeClass changeClass) const;
  bool fires(ChangeClass changeClass, long first);
  void record(const Message& request, ChangeClass changeClass, long number);
  void trackJournal(const Message& request);
  std::optional<Message> injectFault(const Message& request, ChangeClass changeClass, long first);
  void completeLater(const Message& request, int requests);

  World& world_;
  Fault fault_;
  Result result_;
  std::set<std::string> unsynced_;  // files of the database with changes that are not on disk
};

/// The reply to a request that fails; libvirt's failures have a message.
Message failureOf(ChangeClass changeClass, int error, const std::string& message);

/// One line about a change, for messages.
std::string describe(const Message& request);

}  // namespace vfpass::crash
