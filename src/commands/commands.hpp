#pragma once

#include <CLI/CLI.hpp>
#include <functional>

#include "command_session.hpp"
#include "vfpass/error.hpp"

namespace vfpass::commands {

using commands::Session;

/// The selected command; main runs it after parsing.
using Runner = std::function<ExitCode(Session&)>;

// Each function adds its command and options to `app`, and sets `runner` if the user selects the
// command. Every command has a file of its own.
void addCheck(CLI::App& app, Runner& runner);
void addPlan(CLI::App& app, Runner& runner);
void addAttach(CLI::App& app, Runner& runner);
void addDetach(CLI::App& app, Runner& runner);
void addStatus(CLI::App& app, Runner& runner);
void addRecover(CLI::App& app, Runner& runner);
void addHost(CLI::App& app, Runner& runner);
void addPf(CLI::App& app, Runner& runner);
void addVf(CLI::App& app, Runner& runner);
void addHook(CLI::App& app, Runner& runner);
void addVerify(CLI::App& app, Runner& runner);
void addObserve(CLI::App& app, Runner& runner);
void addGuestSetup(CLI::App& app, Runner& runner);
void addHistory(CLI::App& app, Runner& runner);
void addGc(CLI::App& app, Runner& runner);
void addTopo(CLI::App& app, Runner& runner);
void addDoctor(CLI::App& app, Runner& runner);
void addMetrics(CLI::App& app, Runner& runner);
void addInit(CLI::App& app, Runner& runner);
void addSnapshot(CLI::App& app, Runner& runner);
void addComplete(CLI::App& app, Runner& runner);  ///< hidden; for the scripts in completion/

}  // namespace vfpass::commands
