#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "schedule/host_set_up.hpp"
#include "world/fingerprint.hpp"

namespace vfpass::crash {

/// What has to hold while several actors work on a host, and when they are done.
class HostChecks {
 public:
  HostChecks(World& world, const HostSetUp& host) : world_(world), host_(host) {}

  /// One line for each thing that is wrong.
  [[nodiscard]] const std::vector<std::string>& faults() const { return faults_; }
  void fault(const std::string& text) { faults_.push_back(text); }

  /// The database may have another content than at the last check.
  void databaseChanged() { records_.reset(); }

  /// No running guest has lost a device, or the MAC or VLAN of a VF, except those of `inHook`,
  /// which libvirt starts or stops. The mappings must not change meanwhile.
  void checkRunning(const std::set<std::string>& inHook);
  /// The devices of a domain that starts belong to no other one, and have its attributes.
  void checkStarted(const std::string& vm);
  /// No device has two leases, and no generation of a lease is given again. Does nothing as long as
  /// the database has not changed.
  void checkLeases();

  /// A command that ended with success and was the last one for its VM has had its effect.
  struct Promise {
    std::string vm;
    bool attached = false;
  };
  /// Recovers, and detaches all VMs: everything is as before.
  void checkEnd(const std::vector<Promise>& promises, bool rebooted);

 private:
  bool hasItsAttributes(const Lease& lease);
  void checkPromise(const Promise& promise);
  void expectSuccess(const Result& result, const std::string& what);
  void recover();
  Result vfpass(const std::vector<std::string>& words);
  const Records& records();

  World& world_;
  const HostSetUp& host_;
  std::optional<Records> records_;  // nullopt: they have to be read
  std::set<std::string> reported_;
  std::vector<std::string> faults_;
};

}  // namespace vfpass::crash
