#include "command_session.hpp"

#include <spdlog/logger.h>
#include <spdlog/sinks/ostream_sink.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <iostream>

#include "survey_domains.hpp"
#include "vfpass/apply/quarantine_places.hpp"
#include "vfpass/apply/run.hpp"
#include "vfpass/base/call_within.hpp"
#include "vfpass/base/default_deadlines.hpp"
#include "vfpass/base/own_process.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/error.hpp"
#include "vfpass/inventory/read_inventory.hpp"
#include "vfpass/libvirt/libvirt_hypervisor.hpp"
#include "vfpass/state/seal_key_file.hpp"

namespace vfpass::commands {
namespace {

// A plan that has passed its point of no return is completed first.
void stopAfter(const Plan& plan) {
  try {
    StopSignals::throwIfAsked();
  } catch (const Cancelled& stop) {
    throw Cancelled(stop.signal(),
                    std::string(stop.what()) + ": " + describeWork(plan) + " is complete");
  }
}

bool wantsColor(const GlobalOptions& options) {
  if (options.color != "auto") {
    return options.color == "always";
  }
  const char* refused = std::getenv("NO_COLOR");
  return isScreen(STDOUT_FILENO) && (refused == nullptr || *refused == '\0');
}

// Any thread may write; each line is flushed.
std::unique_ptr<spdlog::logger> makeLog(const GlobalOptions& options, std::ostream& err) {
  auto log = std::make_unique<spdlog::logger>(
      "vfpass", std::make_shared<spdlog::sinks::ostream_sink_mt>(err, true));
  log->set_pattern(options.verbosity > 1 ? "vfpass %H:%M:%S.%e %l: %v" : "vfpass: %v");
  log->set_level(options.quiet            ? spdlog::level::warn
                 : options.verbosity == 0 ? spdlog::level::info
                                          : spdlog::level::debug);
  return log;
}

// Only what root does on the running system can change this host.
bool recordsOperations(const GlobalOptions& options) {
  return geteuid() == 0 && options.sysroot == "/";
}

spdlog::level::level_enum levelOf(events::Priority priority) {
  switch (priority) {
    case events::Priority::error:
      return spdlog::level::err;
    case events::Priority::warning:
      return spdlog::level::warn;
    case events::Priority::debug:
      return spdlog::level::debug;
    default:
      return spdlog::level::info;
  }
}

// --watch has the warnings of a reading in a text of its own.
bool showsProgress(const GlobalOptions& options, const std::ostream& err) {
  return &err == &std::cerr && isScreen(STDERR_FILENO) && !options.quiet && options.verbosity == 0;
}

}  // namespace

std::string withRemedy(const Error& error) {
  return std::string(error.what()) + (error.remedy().empty() ? "" : "; " + error.remedy());
}

LockProgress::LockProgress(report::ProgressLine& line, std::string subject)
    : observer_([this, &line, subject = std::move(subject)](const state::LockWait* wait) {
        show(line, subject, wait);
      }) {}

void LockProgress::show(report::ProgressLine& line, const std::string& subject,
                        const state::LockWait* wait) {
  ticker_.reset();
  line.end();  // the seconds are those of this wait
  if (wait == nullptr) {
    return;
  }
  line.show("waiting for the lock of " +
            (subject.empty() ? state::lockSubject(wait->file) : subject) + ", held by " +
            wait->holder);
  ticker_.emplace(line);
}

Session::Session(GlobalOptions options, std::ostream& out, std::ostream& err)
    : options_(std::move(options)),
      out_(out),
      err_(err),
      operations_(recordsOperations(options_),
                  events::isJournalStream(STDERR_FILENO, std::getenv("JOURNAL_STREAM"))),
      log_(makeLog(options_, err)),
      style_{options_.json, wantsColor(options_)},
      progress_(err, showsProgress(options_, err), report::terminalColumns()),
      lockWaits_(showLockWaits()),
      pager_(out) {}

Session::Session(Session& whole, std::ostream& out) : Session(whole.options_, out, whole.err_) {
  warnedByWhole_ = &whole.warned_;
}

// An abandoned call still uses the connection, and ends with this process.
Session::~Session() {
  if (callsInProgress != 0) {
    static_cast<void>(hypervisor_.release());
  }
}

std::ostream& Session::out() {
  outputBegun_ = true;
  return out_;
}

std::ostream& Session::pagedOut() {
  if (!options_.json && !options_.noPager && &out_ == &std::cout) {
    progress_.clear();
    pager_.start();
  }
  return out();
}

host::Root Session::root() const {
  host::Root root(options_.sysroot);
  if (!root.isLive() && !root.exists("sys/bus/pci/devices")) {
    throw Error(printable(options_.sysroot.native()) +
                    ": not a captured tree: sys/bus/pci/devices does not exist",
                "specify a directory created by `vfpass snapshot` (extract a tar file first)",
                ExitCode::badInput);
  }
  return root;
}

host::SystemKernel& Session::kernel() {
  if (!kernel_) {
    kernel_ = std::make_unique<host::SystemKernel>(root());
  }
  return *kernel_;
}

template <typename Ask>
auto Session::connecting(Ask ask, const std::function<void()>& whileWaiting) {
  if (silence_) {
    throw NoAnswer(*silence_);
  }
  const report::ProgressWait wait(progress_, awaitedLibvirt);
  try {
    return answerWithin(libvirtWait_.connection, std::move(ask), whileWaiting);
  } catch (const NoAnswer& error) {
    silence_ = error;
    throw;
  }
}

Hypervisor& Session::hypervisor() {
  if (!hypervisor_) {
    auto connected = connecting([uri = options_.connect] { return libvirt::connect(uri); });
    hypervisor_ = boundedHypervisor(std::move(connected), libvirtWait_.call, progress_);
  }
  return *hypervisor_;
}

void Session::assumeSilence() {
  silence_ = NoAnswer(libvirtWait_.connection.value_or(deadlines::libvirtAnswer));
}

void Session::disconnect() {
  silence_.reset();
  hypervisor_.reset();
}

std::string Session::daemonVersions() {
  return connecting([uri = options_.connect] { return libvirt::daemonVersions(uri); },
                    [this] { progress_.tick(); });
}

state::Database& Session::database() {
  const auto open = [this] {
    auto database = std::make_unique<state::Database>(
        options_.stateDirectory, state::Database::Open::createIfMissing, deadlines::database);
    database->setCurrentBoot(kernel().bootId());
    try {
      database->requireUndamaged();
    } catch (const state::UnknownOperation&) {
      if (!acceptsUnknownOperations_) {
        throw;
      }
    }
    return database;
  };
  if (!database_) {
    try {
      database_ = open();
    } catch (const state::CorruptDatabase& error) {
      const auto aside = state::setAsideCorruptDatabase(options_.stateDirectory);
      warn(std::string(error.what()) + "; moved to " + aside.file.string() +
           (aside.keptLeases ? ", with leases and journal kept"
                             : "; `vfpass recover` rebuilds the leases from the domains") +
           (aside.keptQuarantine
                ? ""
                : "; not every device in quarantine could be read: before a VM gets a device, look "
                  "for its failed resets and errors in `vfpass history`"));
      database_ = open();
    }
  }
  return *database_;
}

std::vector<Lease> Session::readLeases() {
  state::Database database = readDatabase();
  if (options_.sysroot == "/") {  // a captured tree has no boot ID
    database.setCurrentBoot(kernel().bootId());
  }
  return database.leases();
}

state::Database Session::readDatabase() {
  return {options_.stateDirectory, state::Database::Open::readOnly, deadlines::database};
}

std::vector<QuarantinedDevice> Session::quarantined() {
  return options_.sysroot == "/" ? apply::locate(readDatabase().quarantined(), kernel())
                                 : std::vector<QuarantinedDevice>{};
}

std::optional<QuarantinedDevice> Session::quarantined(const PciAddress& device) {
  for (const QuarantinedDevice& each : readDatabase().quarantined()) {
    if (each.device == device) {
      return apply::locate({each}, kernel()).front();
    }
  }
  return std::nullopt;
}

std::vector<Plan> Session::openWork() {
  std::vector<Plan> plans;
  if (options_.sysroot != "/") {
    return plans;
  }
  const state::Database database = readDatabase();
  for (const auto& operation : database.openOperations()) {
    Plan plan{operation.kind, operation.domain, operation.domainName, {}, {}};
    for (const auto& journaled : operation.steps) {
      plan.steps.push_back(journaled.step);
    }
    plans.push_back(std::move(plan));
  }
  return plans;
}

std::vector<SoftRoceRecord> Session::softRoceRecords() {
  const state::Database database = readDatabase();
  return database.softRoceRecords();
}

Inventory Session::inventory(const std::vector<PciAddress>& functions) {
  return inventory::readInventory(root(), functions);
}

Inventory Session::inventory(const std::vector<PciAddress>& functions,
                             const std::vector<PciAddress>& serialsOf) {
  Inventory inventory = inventory::readInventory(root(), functions, serialsToSelect());
  addSerials(inventory, serialsOf);
  return inventory;
}

void Session::addSerials(Inventory& inventory, const std::vector<PciAddress>& pfs) const {
  inventory::addSerials(root(), pfs, inventory);
}

host::Serials Session::serialsToSelect() {
  const auto bySerial = [](const auto& entry) { return entry.pf.serial.has_value(); };
  const auto& all = configuration();
  const bool any = std::ranges::any_of(all.host.pfs, bySerial) ||
                   std::ranges::any_of(all.mappings, [&](const Mapping& mapping) {
                     return std::ranges::any_of(mapping.vfs, bySerial);
                   });
  return any ? host::Serials::read : host::Serials::skip;
}

void Session::addHolders(Inventory& inventory, const std::vector<PciAddress>& pfs) {
  std::vector<PciAddress> devices;
  for (const auto& pf : inventory.pfs) {
    if (std::find(pfs.begin(), pfs.end(), pf.address) != pfs.end()) {
      std::transform(pf.vfs.begin(), pf.vfs.end(), std::back_inserter(devices),
                     [](const VirtualFunction& vf) { return vf.address; });
    }
  }
  std::transform(inventory.functions.begin(), inventory.functions.end(),
                 std::back_inserter(devices),
                 [](const Device& function) { return function.address; });
  inventory.holders = kernel().findHolders(devices);
  inventory.quarantined = quarantined();
}

const config::Configuration& Session::configuration() {
  if (!configuration_) {
    configuration_ = config::loadConfiguration(options_.configDirectory);
  }
  return *configuration_;
}

const std::vector<config::Problem>& Session::configurationProblems() {
  if (!configurationProblems_) {
    const auto& problems = configuration().problems;
    configurationProblems_ = config::crossCheck(configuration().mappings);
    configurationProblems_->insert(configurationProblems_->end(), problems.begin(), problems.end());
  }
  return *configurationProblems_;
}

const SealKey& Session::sealKey() {
  if (!sealKey_) {
    sealKey_ = state::readSealKey({options_.configDirectory});
  }
  return *sealKey_;
}

apply::Tools Session::tools() {
  apply::Tools tools = hostTools();
  tools.hypervisor = &hypervisor();
  tools.readDefinitions = [this] { return definitionsOf(surveyDomains(*this)); };
  return tools;
}

apply::Tools Session::hostTools() {
  apply::Tools tools{kernel(),  database(),           nullptr, domain::builtInTemplates(),
                     sealKey(), options_.runDirectory};
  tools.makeSealKey = [this] { sealKey_ = state::makeSealKey({options_.configDirectory}); };
  tools.checkpoint = StopSignals::throwIfAsked;
  tools.onAction = [this](const Action& action) {
    verbose(describe(action));
    progress_.show(describe(action));
  };
  return tools;
}

std::unique_ptr<LockProgress> Session::showLockWaits(const std::string& subject) {
  return progress_.isEnabled() ? std::make_unique<LockProgress>(progress_, subject) : nullptr;
}

void Session::run(const Plan& plan, apply::Tools& tools, std::vector<state::FileLock> locks) {
  const StopSignals stop;
  const report::ProgressTicker ticker(progress_);  // a single step can take minutes
  for (const auto& warning : apply::run(plan, tools, std::move(locks))) {
    warn(warning);
  }
  result_.executed.push_back(plan);
  stopAfter(plan);
}

ExitCode Session::fail(const Error& error) {
  operations_.failed(error);
  progress_.clear();
  write(events::Priority::warning, "warning: " + withRemedy(error));
  result_.failures.push_back(error);
  return error.code();
}

bool Session::hasDoneNothing() const {
  return result_.executed.empty() && result_.failures.empty() && result_.notes.empty();
}

ExitCode Session::finish(const std::string& command, ExitCode code) {
  progress_.clear();
  if (options_.json) {
    result_.command = command;
    report::writeResult(out(), result_);
  }
  return code;
}

// These lines contain names from XML, sysfs and the guest.
void Session::write(events::Priority priority, const std::string& line) {
  const auto level = levelOf(priority);
  const std::string text = printableLines(line);
  pager_.finish();
  if (log_->should_log(level) && !operations_.writeLine(priority, text)) {
    log_->log(level, "{}", text);
  }
}

void Session::note(const std::string& line) {
  result_.notes.push_back(line);
  progress_.clear();
  write(events::Priority::info, line);
}

void Session::warn(const std::string& line) {
  if (!warned_.insert(line).second) {
    return;
  }
  result_.warnings.push_back(line);
  if (warnedByWhole_ == nullptr || warnedByWhole_->insert(line).second) {
    progress_.clear();
    write(events::Priority::warning, "warning: " + line);
  }
}

void Session::verbose(const std::string& line) { write(events::Priority::debug, line); }

void Session::requireThisHost(const std::string& what) const {
  if (options_.sysroot != "/") {
    throw Error(what + ": not possible on a captured tree (--sysroot)",
                "omit --sysroot to work on this host", ExitCode::badInput);
  }
}

void Session::requireChangesPossible(const std::string& what) const {
  requireThisHost(what);
  if (geteuid() != 0) {
    throw Error(what + ": must run as root, because it changes this host or its VMs",
                "run it with sudo");
  }
}

void Session::requireDomainChangesPossible(const std::string& what) {
  requireChangesPossible(what);
  libvirtWait_ = {std::nullopt, std::nullopt};
  requireLocalLibvirt(what);
}

void Session::requireLocalLibvirt(const std::string& what) {
  const std::string uri = hypervisor().uri();
  if (!isLocalSystem(uri)) {
    throw Error(what + ": " + printable(uri) + " is not the system libvirt of this host; only " +
                    "that one knows which domains use its devices",
                "omit --connect and LIBVIRT_DEFAULT_URI, or use qemu:///system",
                ExitCode::badInput);
  }
}

}  // namespace vfpass::commands
