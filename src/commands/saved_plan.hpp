#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "vfpass/plan.hpp"

namespace vfpass::commands {

/// A step of a saved plan.
struct SavedStep {
  std::string object;  ///< the domain's UUID; for `host apply` the PF's address, or `soft-roce`
  std::string action;  ///< for people
  std::string change;  ///< the action as JSON

  auto operator<=>(const SavedStep&) const = default;
};

/// What a command planned to do. The file is only compared with what the command plans when it is
/// given the file; nothing in it is executed, so it may come from anybody.
struct SavedPlan {
  std::string command;  ///< `attach`, `detach` or `host apply`
  std::string domain;   ///< UUID; empty for `host apply`
  std::string scope;    ///< of the domain's configurations, as text
  std::string xml;      ///< SHA-256 of the domain's persistent XML before; empty without
  std::vector<SavedStep> steps;

  auto operator<=>(const SavedPlan&) const = default;
};

/// A plan of attach or detach. `xml`: the domain's persistent XML.
SavedPlan planToSave(const std::string& command, const Plan& plan, const Scope& scope,
                     const std::string& xml);

/// Adds the steps of `host apply` for one object.
void addSteps(SavedPlan& plan, const std::string& object, const std::vector<Step>& steps);

/// JSON: docs/json/saved-plan.schema.json. Throws Error.
void writeSavedPlan(const std::filesystem::path& file, const SavedPlan& plan);
/// The plan in the file; nullopt without a file. Throws Error (bad input) unless writeSavedPlan()
/// wrote the file for this command.
std::optional<SavedPlan> readSavedPlan(const std::filesystem::path& file,
                                       const std::string& command);

/// Throws Error (refused) unless the plan that was made now is the saved one: it names the first
/// difference.
/// Accepts everything without a saved one.
void requireSame(const std::optional<SavedPlan>& saved, const SavedPlan& now,
                 const std::filesystem::path& file);

}  // namespace vfpass::commands
