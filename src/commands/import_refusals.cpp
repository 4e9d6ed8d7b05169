#include <algorithm>
#include <iterator>

#include "attach_input.hpp"
#include "import_input.hpp"
#include "vfpass/config/new_mapping.hpp"
#include "vfpass/plan/plan_attach.hpp"

namespace vfpass::commands {
namespace {

// The file is not written yet, and its comments will change the lines.
std::string withoutPlace(const Mapping& mapping, const std::string& message) {
  const auto rest = [&](const auto& entries) -> std::string {
    for (const auto& entry : entries) {
      if (const auto prefix = toString(entry.place) + ": "; message.starts_with(prefix)) {
        return message.substr(prefix.size());
      }
    }
    return {};
  };
  std::string found = rest(mapping.vfs);
  found = found.empty() ? rest(mapping.functions) : found;
  return found.empty() ? message : found;
}

std::vector<plan::Objection> objectionsTo(Session& session, const Subject& subject,
                                          const DomainSurvey& survey,
                                          const std::vector<Lease>& leases) {
  const auto input = attachInput(session, subject, survey, leases, scopeFor(subject.domain, {}),
                                 readHostFor(session, subject, leases));
  return plan::planAttach(input).objections;
}

}  // namespace

std::vector<ImportRefusal> importRefusals(Session& session, const ImportSubject& subject,
                                          const plan::ImportInput& input, const std::string& text) {
  const auto mapping = config::readProposed(text);
  if (!mapping) {
    session.warn("the proposed mapping has mistakes; `vfpass check FILE` lists them");
    return {};
  }
  std::vector<ImportRefusal> refusals;
  try {
    const Subject proposed{*mapping, subject.domain, input.otherMappings, {}, {}};
    for (const auto& objection : objectionsTo(session, proposed, subject.survey, input.leases)) {
      refusals.push_back({withoutPlace(*mapping, objection.message), objection.remedy});
    }
  } catch (const Error& error) {
    session.warn("cannot tell what attach would refuse: " + withRemedy(error));
  }
  return refusals;
}

}  // namespace vfpass::commands
