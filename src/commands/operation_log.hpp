#pragma once

#include <optional>
#include <string>
#include <vector>

#include "vfpass/error.hpp"
#include "vfpass/events/journal_event.hpp"

namespace vfpass::commands {

/// Records in the systemd journal what this command does, as in docs/logging.md. Nothing here
/// throws or waits: an operation never depends on the journal. Without one, the functions have no
/// effect.
class OperationLog {
 public:
  /// `recording`: false for a command that changes nothing of this host. `stderrIsJournal`: stderr
  /// is a stream of the journal.
  OperationLog(bool recording, bool stderrIsJournal, std::string socket = events::journalSocket);

  /// Begins an operation on this VM (as the user named it; empty: none). It ends with one of the
  /// functions below; main ends it for an Error that ends the command. One that does not end
  /// changed nothing, and has no entry.
  void begin(events::Operation operation, const std::string& vm = {});
  void setDomain(const Uuid& domain, const std::string& name);
  void addDevices(const std::vector<Lease>& leases);
  void addPf(const PciAddress& pf);

  void done(const std::string& message) { end({events::Result::done, message}); }
  /// True if the user sees the error in the journal, and nowhere else.
  bool failed(const Error& error);
  /// Ends the operation, if one has begun. False if the journal has no entry about it.
  bool end(const events::Ending& ending);

  /// Records the end of another operation than the one that has begun.
  void record(events::Operation operation, const Uuid& domain, const std::string& vm,
              const events::Ending& ending);

  /// Writes a line of the log that would otherwise go to stderr. False if it has to go there.
  bool writeLine(events::Priority priority, const std::string& line);

 private:
  [[nodiscard]] bool send(const events::Subject& subject, const events::Ending& ending) const;

  bool recording_;
  bool stderrIsJournal_;
  std::string socket_;
  std::optional<events::Subject> current_;
};

/// The user who logged in and ran this command, even if as root by sudo, su or pkexec: the kernel's
/// login UID, or without one (no PAM) the user of sudo. nullopt for a service.
std::optional<events::Invoker> invokingUser();

/// Made of the content of /proc/self/loginuid and of sudo's SUDO_UID, which may be null.
std::optional<unsigned> invokingUserId(const std::string& loginUid, const char* sudoUid);

}  // namespace vfpass::commands
