#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "vfpass/diagnosis.hpp"
#include "view.hpp"

namespace vfpass::doctor {

/// Takes what a check finds, under the check's key.
class Results {
 public:
  Results(std::string_view key, std::string_view why, std::vector<Diagnosis>& into)
      : key_(key), why_(why), into_(into) {}

  void passed(std::string subject, std::string expected, std::string seen);
  /// `remedy` is a command to type, where there is one.
  void failed(std::string subject, std::string expected, std::string seen, std::string remedy);
  void unseen(std::string subject, std::string expected, std::string seen, std::string remedy);
  void waived(std::string reason);

 private:
  std::string_view key_;
  std::string_view why_;
  std::vector<Diagnosis>& into_;
};

/// One check. A new one is a row in its area's table, two tests, and a row in docs/doctor.md.
struct Check {
  std::string_view key;
  std::string_view why;
  std::string (*inapplicable)(const View&);  ///< why it does not apply; empty: it does
  void (*run)(const View&, Results&);
};

// One table for each area, the first link of the chain first.
std::span<const Check> cpuIommuChecks();
std::span<const Check> sriovChecks();
std::span<const Check> acsChecks();
std::span<const Check> gpuChecks();
std::span<const Check> rdmaChecks();
std::span<const Check> libvirtChecks();
std::span<const Check> rivalChecks();

// Reasons that several checks share.
std::string always(const View& view);
std::string withoutGpu(const View& view);
std::string withoutPf(const View& view);
std::string withoutRail(const View& view);

}  // namespace vfpass::doctor
