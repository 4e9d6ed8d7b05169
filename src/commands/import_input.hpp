#pragma once

#include <string>

#include "command_session.hpp"
#include "survey_domains.hpp"
#include "vfpass/imported_mapping.hpp"
#include "vfpass/plan/import_mapping.hpp"

namespace vfpass::commands {

/// The domain whose devices are imported, and the others.
struct ImportSubject {
  DomainDescription domain;
  DomainSurvey survey;
};

/// Throws (bad input) if libvirt has no such domain, and (refused) if another program manages it:
/// OpenStack and others by what the domain's XML says, Proxmox VE and Incus by their own files.
ImportSubject importSubject(Session& session, const std::string& vm);

/// Reads what importMapping() judges.
plan::ImportInput importInput(Session& session, const ImportSubject& subject);

/// What attach would refuse now of the mapping with this text: the objections of its plan, without
/// places in the file. Warns if they cannot be found.
std::vector<ImportRefusal> importRefusals(Session& session, const ImportSubject& subject,
                                          const plan::ImportInput& input, const std::string& text);

/// Reads the PFs and what files set up at boot.
ImportedHost importedHost(Session& session);

}  // namespace vfpass::commands
