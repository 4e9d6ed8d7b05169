#include "session.hpp"

#include <spdlog/sinks/ostream_sink.h>
#include <unistd.h>

#include <cstdlib>
#include <ostream>

#include "vfpass/base/text.hpp"
#include "vfpass/hypervisor/libvirt.hpp"
#include "vfpass/inventory/read_inventory.hpp"

namespace vfpass::cli {
namespace {

// Long enough for another command that waits for a slow driver, short enough to end.
constexpr std::chrono::milliseconds databasePatience{15000};
constexpr std::chrono::milliseconds lockPatience{150000};

bool wantsColor(const GlobalOptions& options) {
  if (options.color != "auto") {
    return options.color == "always";
  }
  const char* refused = std::getenv("NO_COLOR");
  return isatty(STDOUT_FILENO) == 1 && (refused == nullptr || *refused == '\0');
}

}  // namespace

Session::Session(GlobalOptions options, std::ostream& out, std::ostream& err)
    : options_(std::move(options)),
      out_(out),
      log_("vfpass", std::make_shared<spdlog::sinks::ostream_sink_mt>(err, true)),
      style_{options_.json, wantsColor(options_)} {
  log_.set_pattern(options_.verbosity > 1 ? "vfpass %H:%M:%S.%e %l: %v" : "vfpass: %v");
  log_.set_level(options_.quiet            ? spdlog::level::warn
                 : options_.verbosity == 0 ? spdlog::level::info
                                           : spdlog::level::debug);
}

host::Root Session::root() const {
  host::Root root(options_.sysroot);
  if (!root.isLive() && !root.exists("sys/bus/pci/devices")) {
    throw Error(printable(options_.sysroot.native()) +
                    " is no captured tree: it has no sys/bus/pci/devices",
                "name a folder that `vfpass snapshot` made (a tar has to be unpacked first)",
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

Hypervisor& Session::hypervisor() {
  if (!hypervisor_) {
    hypervisor_ = hypervisor::connectLibvirt(options_.connect);
  }
  return *hypervisor_;
}

state::Database& Session::database() {
  const auto open = [this] {
    auto database = std::make_unique<state::Database>(
        options_.stateDirectory, state::Database::Open::createIfMissing, databasePatience);
    database->presentBoot(kernel().bootId());
    return database;
  };
  if (!database_) {
    try {
      database_ = open();
    } catch (const state::CorruptDatabase& error) {
      warn(std::string(error.what()) + "; kept as " +
           state::setAsideCorruptDatabase(options_.stateDirectory).string() +
           ", leases are rebuilt from the domains");
      database_ = open();
    }
  }
  return *database_;
}

std::vector<Lease> Session::readLeases() {
  state::Database database(options_.stateDirectory, state::Database::Open::readOnly,
                           databasePatience);
  if (options_.sysroot == "/") {  // a captured tree is no boot
    database.presentBoot(kernel().bootId());
  }
  return database.leases();
}

Inventory Session::inventory(const std::vector<PciAddress>& functions) {
  return inventory::readInventory(root(), functions);
}

const config::Configuration& Session::configuration() {
  if (!configuration_) {
    configuration_ = config::loadConfiguration(options_.configDirectory);
  }
  return *configuration_;
}

apply::Tools Session::tools() {
  apply::Tools tools{kernel(), database(), &hypervisor(), domain::builtInTemplates(),
                     options_.runDirectory};
  tools.lockPatience = lockPatience;
  tools.onAction = [this](const Action& action) { verbose(describe(action)); };
  return tools;
}

void Session::note(const std::string& line) { log_.info("{}", line); }

void Session::warn(const std::string& line) { log_.warn("warning: {}", line); }

void Session::verbose(const std::string& line) { log_.debug("{}", line); }

void Session::requireChangesPossible(const std::string& what) const {
  if (options_.sysroot != "/") {
    throw Error(what + " is not possible on a captured tree (--sysroot)",
                "leave --sysroot out to work on this host", ExitCode::badInput);
  }
  if (geteuid() != 0) {
    throw Error(what + " needs root: it writes to sysfs and to " + options_.stateDirectory.string(),
                "run it with sudo");
  }
}

}  // namespace vfpass::cli
