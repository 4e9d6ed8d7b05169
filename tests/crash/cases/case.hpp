#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "world/world.hpp"

namespace vfpass::crash {

/// One fixed sequence of commands and faults. Prints what happens; a failed expectation makes the
/// program fail, and the sequence continues.
class Case {
 public:
  explicit Case(const std::filesystem::path& scratch);

  World world;

  /// Runs `vfpass WORDS`, prints the command and its output.
  Result run(const std::vector<std::string>& words, const Fault& fault = {});
  Result start(const std::string& vm);
  Result stop(const std::string& vm);

  void expect(bool holds, const std::string& what);
  void expectSuccess(const Result& result);
  /// It failed, and its message has this text, such as a remedy.
  void expectRefusal(const Result& result, const std::string& text);
  /// The fingerprint is one of the allowed ones, and no operation is open.
  void expectState(const std::vector<std::string>& allowed);
  /// The metadata of every domain agrees with the leases, and no operation is open.
  void expectConsistent();

  /// The state of a copy of this host after these commands, each a list of words.
  std::string stateAfter(const std::vector<std::vector<std::string>>& commands);
  [[nodiscard]] std::string state() const;
  World copy() const { return World(world, scratch_ / "copy"); }

  [[nodiscard]] bool failed() const { return failed_; }

 private:
  Result show(const std::string& command, Result result);

  std::filesystem::path scratch_;
  bool failed_ = false;
};

/// A fault at the n-th change of libvirt or of the kernel.
Fault killBeforeDefine();
Fault libvirtFault(FaultMode mode, long at);
Fault kernelFault(FaultMode mode, long at, int error);

/// The VF of a domain's only lease; throws if there is another number of leases.
Lease onlyLease(const World& world, const std::string& vm);

/// Whether a VF of `firstPf` that the running domain has is bound to vfio-pci and in this VLAN.
bool guestKeepsItsVf(World& world, const std::string& vm, unsigned vlan);

struct NamedCase {
  std::string name;
  void (*run)(Case&);
};
std::vector<NamedCase> lostReplyCases();
std::vector<NamedCase> stuckOperationCases();
std::vector<NamedCase> laterRunCases();
std::vector<NamedCase> lockedDeviceCases();
std::vector<NamedCase> databaseCases();
std::vector<NamedCase> pendingWriteCases();
std::vector<NamedCase> interleavingCases();
std::vector<NamedCase> besideDetachCases();
std::vector<NamedCase> besideGcCases();
std::vector<NamedCase> powerCases();
std::vector<NamedCase> readerCases();
std::vector<NamedCase> partitionCases();

}  // namespace vfpass::crash
