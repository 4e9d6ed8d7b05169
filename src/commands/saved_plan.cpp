#include "saved_plan.hpp"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>

#include "vfpass/agent/guest_scripts.hpp"
#include "vfpass/base/bounded_read.hpp"
#include "vfpass/base/file_descriptor.hpp"
#include "vfpass/base/json_reader.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/base/write_file.hpp"
#include "vfpass/error.hpp"
#include "vfpass/report/table.hpp"
#include "vfpass/state/record_json.hpp"

namespace vfpass::commands {
namespace {

using Json = nlohmann::ordered_json;

constexpr JsonLimits limits{16U << 20U, 64};

std::string describeScope(const Scope& scope) {
  return scope.config && scope.live ? "config and live" : scope.live ? "live" : "config";
}

std::string readFile(const std::filesystem::path& file) {
  const auto refuse = [&](const std::string& reason) {
    return Error(printable(file.string()) + ": cannot read the saved plan: " + reason,
                 "name a file that `vfpass plan --output FILE` wrote", ExitCode::badInput);
  };
  // Also a pipe, such as /dev/stdin.
  const FileDescriptor opened(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY));
  if (!opened) {
    throw refuse(errnoText(errno));
  }
  try {
    return readBounded(opened.get(), limits.bytes);
  } catch (const ReadRefused& refused) {
    throw refuse(refused.what());
  }
}

SavedPlan decode(const JsonReader& document) {
  if (document.requireObject()["schema_version"].json() != report::schemaVersion) {
    document.refuse("it is of another version of vfpass");
  }
  SavedPlan plan{document["command"].requireText(),
                 document["domain"].requireText(),
                 document["scope"].requireText(),
                 document["domain_xml_sha256"].requireText(),
                 {}};
  for (const JsonReader& step : document["steps"].requireList()) {
    plan.steps.push_back({step["object"].requireText(), step["action"].requireText(),
                          step["change"].requireObject().json().dump()});
  }
  return plan;
}

using Comparison = bool (*)(const SavedStep&, const SavedStep&);

bool hasSameText(const SavedStep& one, const SavedStep& other) {
  return one.object == other.object && one.action == other.action;
}
bool isSame(const SavedStep& one, const SavedStep& other) { return one == other; }

// A step of `plan` that `other` does not have; null if there is none.
const SavedStep* missingIn(const SavedPlan& other, const SavedPlan& plan, Comparison compare) {
  const auto found = std::ranges::find_if(plan.steps, [&](const SavedStep& step) {
    return std::ranges::none_of(other.steps,
                                [&](const SavedStep& each) { return compare(step, each); });
  });
  return found == plan.steps.end() ? nullptr : &*found;
}

// Steps that read differently first: those are the ones that people recognize.
std::string firstDifference(const SavedPlan& saved, const SavedPlan& now) {
  if (const auto* added = missingIn(saved, now, hasSameText)) {
    return "it would now also " + added->action;
  }
  if (const auto* gone = missingIn(now, saved, hasSameText)) {
    return "it would no longer " + gone->action;
  }
  if (const auto* changed = missingIn(saved, now, isSame)) {
    return "it would now " + changed->action + " with other details";
  }
  if (saved.domain != now.domain) {
    return "it is of another domain, " + saved.domain;
  }
  if (saved.scope != now.scope) {
    return "it changes another configuration of the domain (" + saved.scope + ")";
  }
  return saved.xml != now.xml ? "the domain's XML is another one"
                              : "the steps are in another order";
}

}  // namespace

SavedPlan planToSave(const std::string& command, const Plan& plan, const Scope& scope,
                     const std::string& xml) {
  SavedPlan saved{command,
                  toString(plan.domain),
                  describeScope(scope),
                  xml.empty() ? "" : agent::sha256(xml),
                  {}};
  addSteps(saved, saved.domain, plan.steps);
  return saved;
}

void addSteps(SavedPlan& plan, const std::string& object, const std::vector<Step>& steps) {
  for (const Step& step : steps) {
    // Parsed and written again, so that a saved step is equal to the one that is read.
    const auto change = nlohmann::json::parse(state::actionToJson(step.action)).dump();
    plan.steps.push_back({object, printable(describe(step.action)), change});
  }
}

void writeSavedPlan(const std::filesystem::path& file, const SavedPlan& plan) {
  Json document{{"schema_version", report::schemaVersion},
                {"command", plan.command},
                {"domain", plan.domain},
                {"scope", plan.scope},
                {"domain_xml_sha256", plan.xml},
                {"steps", Json::array()}};
  for (const auto& [object, action, change] : plan.steps) {
    document["steps"].push_back(
        {{"object", object}, {"action", action}, {"change", Json::parse(change)}});
  }
  writeOutputFile(file, document.dump(2, ' ', true, Json::error_handler_t::replace) + '\n');
}

std::optional<SavedPlan> readSavedPlan(const std::filesystem::path& file,
                                       const std::string& command) {
  if (file.empty()) {
    return std::nullopt;
  }
  const JsonSource source{printable(file.string()) + ": not a saved plan",
                          "name a file that `vfpass plan --output FILE` wrote", ExitCode::badInput};
  const nlohmann::json document = parseJson(readFile(file), limits, source);
  SavedPlan plan = decode(JsonReader(document, source));
  if (plan.command != command) {
    throw Error(printable(file.string()) + ": this plan is for `vfpass " + printable(plan.command) +
                    "`, not for `vfpass " + command + "`",
                "run the command that it is for", ExitCode::badInput);
  }
  return plan;
}

void requireSame(const std::optional<SavedPlan>& saved, const SavedPlan& now,
                 const std::filesystem::path& file) {
  if (saved && *saved != now) {
    throw Error(printable(file.string()) + ": the state has changed since this plan was saved: " +
                    printable(firstDifference(*saved, now)),
                "save a new plan, read it, and run the command with it", ExitCode::refused);
  }
}

}  // namespace vfpass::commands
