#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "session.hpp"
#include "vfpass/plan/soft_roce.hpp"
#include "vfpass/report/host_report.hpp"

namespace vfpass::cli {

/// Brings the SoftRoCE links to what host.yaml says, or tells how they are and what that would
/// take. What fails for one link does not keep the others from their turn.
class SoftRoceRun {
 public:
  enum class Mode { show, look, change };

  SoftRoceRun(Session& session, Mode mode);

  void run();

  /// By name; none where host.yaml names none and the host has none.
  [[nodiscard]] std::vector<report::SoftRoceEntry> entries() const;
  [[nodiscard]] const std::vector<ExitCode>& codes() const { return codes_; }

 private:
  struct Turn {
    plan::SoftRoceDecision decision;
    report::SoftRoceEntry entry;
  };

  [[nodiscard]] bool isLive() const;
  std::vector<SoftRoceRecord> records();
  void settleRecords(const plan::SoftRoceDecision& decision);
  void checkNetdev(Turn& turn);
  void remove(Turn& turn);
  void create(Turn& turn);
  void make(const std::string& name, const std::string& netdev);
  void putBack(Turn& turn, const Error& error);
  void requireFittingNetdev(const SoftRocePolicy& wanted);
  void act(Turn& turn, const std::string& description, const std::function<void()>& work);
  void fail(Turn& turn, const Error& error);

  Session& session_;
  const std::vector<SoftRocePolicy>& policy_;
  Mode mode_;
  host::Root root_;
  std::string bootId_;
  std::vector<Turn> turns_;
  std::vector<ExitCode> codes_;
};

}  // namespace vfpass::cli
