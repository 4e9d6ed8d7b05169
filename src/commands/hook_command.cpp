#include <fstream>
#include <optional>
#include <set>

#include "commands.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/doctor/doctor.hpp"
#include "vfpass/install/hook_files.hpp"
#include "vfpass/report/result_report.hpp"

namespace vfpass::commands {
namespace {

namespace fs = std::filesystem;

// Outside /etc: libvirtd's AppArmor profile lets it run /usr/sbin/* unconfined, but programs below
// its hooks directory only under its own profile.
constexpr const char* defaultBinary = "/usr/sbin/vfpass-qemu-hook";

struct HookOptions {
  std::string hooksDirectory = install::libvirtHooksDirectory;
  std::string binary = defaultBinary;
  bool noReload = false;
  bool force = false;
  bool dryRun = false;

  [[nodiscard]] install::HookPlaces places() const {
    return install::placesFrom(hooksDirectory, binary);
  }
};

// The hook program beside vfpass, if that runs from its build directory and the program is to be
// installed. Only for libvirt's own directory: no other one needs a place that AppArmor allows.
std::optional<fs::path> programToInstall(const install::HookPlaces& places) {
  if (!places.areLibvirts() || places.binary != defaultBinary || fs::exists(places.binary)) {
    return std::nullopt;
  }
  const fs::path sibling =
      fs::read_symlink("/proc/self/exe").parent_path() / places.binary.filename();
  return fs::exists(sibling) ? std::optional(sibling) : std::nullopt;
}

// libvirt checks at its start whether there is any hook and caches the result, so that another hook
// needs no reload. It may not know of a link that a package or an administrator made.
bool needsReload(Session& session, const HookOptions& options, bool first) {
  const bool ours = options.places().areLibvirts();
  return first ||
         (ours && doctor::hookKnowledge(session.root(),
                                        session.options().runDirectory.relative_path().string()) ==
                      doctor::HookKnowledge::stale);
}

// For `vfpass doctor`, which cannot tell from the daemon itself whether it was reloaded.
void markReloaded(Session& session, const std::vector<std::string>& daemons) {
  const fs::path folder = session.options().runDirectory;
  std::error_code error;
  if (fs::create_directories(folder, error)) {
    fs::permissions(folder, fs::perms::owner_all, error);
  }
  std::ofstream file(folder / doctor::daemonMarkFile, std::ios::trunc);
  for (const std::string& daemon : daemons) {
    file << doctor::daemonMark(session.root(), daemon).value_or("") << '\n';
  }
  if (!file.flush()) {
    session.warn("cannot record in " + folder.string() +
                 " that the daemon was reloaded; doctor cannot report it");
  }
}

void reloadIfNeeded(Session& session, const HookOptions& options, bool needed,
                    std::vector<std::string>& actions) {
  if (!needed) {
    return;
  }
  if (!options.places().areLibvirts()) {
    actions.emplace_back("no daemon was reloaded: libvirt does not use that directory");
  } else if (options.noReload) {
    actions.emplace_back("no daemon was reloaded: libvirt calls the hook only after a reload");
  } else {
    std::vector<std::string> daemons;
    const auto reloaded = install::reloadLibvirt("/run", "/proc", &daemons);
    actions.insert(actions.end(), reloaded.begin(), reloaded.end());
    markReloaded(session, daemons);
  }
}

ExitCode install(Session& session, const HookOptions& options) {
  session.requireChangesPossible("hook install");
  const install::HookPlaces places = options.places();
  std::vector<std::string> actions;
  if (const auto program = programToInstall(places)) {
    install::requireLoadable(*program);
    install::copyProgram(*program, places.binary);
    actions.push_back("installed " + places.binary.string());
  }
  install::requireLoadable(places.binary);
  const bool first = !anyHookPresent(places);
  const auto linked = linkHook(places);
  actions.insert(actions.end(), linked.begin(), linked.end());
  reloadIfNeeded(session, options, needsReload(session, options, first), actions);
  if (actions.empty()) {
    actions.emplace_back("already installed");
  }
  report::writeActions(session.out(), actions, session.style());
  return ExitCode::done;
}

// What install() would do, with the same refusals.
ExitCode showInstall(Session& session, const HookOptions& options) {
  session.requireThisHost("hook install");
  const install::HookPlaces places = options.places();
  const auto program = programToInstall(places);
  install::requireLoadable(program.value_or(places.binary));
  std::vector<std::string> actions;
  if (program) {
    actions.push_back("would install " + places.binary.string());
  }
  const auto links = plannedLinks(places);
  actions.insert(actions.end(), links.begin(), links.end());
  ExitCode code = actions.empty() ? ExitCode::done : ExitCode::pending;
  if (needsReload(session, options, !anyHookPresent(places))) {
    const auto reload = install::plannedReload(places, options.noReload);
    actions.push_back(reload.text);
    code = reload.isChange ? ExitCode::pending : code;
  }
  if (actions.empty()) {
    actions.emplace_back("already installed");
  }
  report::writeActions(session.out(), actions, session.style());
  return code;
}

void requireNoLeases(Session& session) {
  std::set<std::string> names;
  for (const auto& lease : session.readLeases()) {
    names.insert(printable(lease.domainName));
  }
  if (!names.empty()) {
    throw Error("without the hook, these VMs could start with unconfigured VFs: " +
                    joinFirst({names.begin(), names.end()}),
                "run `vfpass detach` for each of them first, or use --force", ExitCode::refused);
  }
}

ExitCode remove(Session& session, const HookOptions& options) {
  session.requireChangesPossible("hook remove");
  if (!options.force) {
    requireNoLeases(session);
  }
  auto actions = options.dryRun ? std::vector<std::string>{"no lease prevents the removal"}
                                : unlinkHook(options.places());
  if (actions.empty()) {
    actions.emplace_back("not installed");
  }
  report::writeActions(session.out(), actions, session.style());
  return ExitCode::done;
}

void addPlaces(CLI::App& command, HookOptions& options) {
  command.add_option("--hooks-dir", options.hooksDirectory, "Directory of libvirt's hooks")
      ->type_name("DIRECTORY")
      ->capture_default_str();
  command.add_option("--hook-binary", options.binary, "Hook program")
      ->type_name("FILE")
      ->capture_default_str();
}

}  // namespace

void addHook(CLI::App& app, Runner& runner) {
  auto* hook = app.add_subcommand(
      "hook", "Install or remove the libvirt qemu hook, which prepares VFs at every start");
  hook->require_subcommand(1);
  const auto options = std::make_shared<HookOptions>();
  auto* installer = hook->add_subcommand("install", "Link the hook into libvirt's qemu.d");
  addPlaces(*installer, *options);
  installer->add_flag("--no-reload", options->noReload, "Do not reload the libvirt daemon");
  installer->add_flag("--dry-run", options->dryRun,
                      "Only show the changes; exit code 3 if there are any");
  installer->callback([&runner, options] {
    runner = [options](Session& session) {
      return options->dryRun ? showInstall(session, *options) : install(session, *options);
    };
  });
  auto* remover = hook->add_subcommand("remove", "Remove the link; refused while leases exist");
  addPlaces(*remover, *options);
  remover->add_flag("--force", options->force, "Remove the link even if leases exist");
  remover->add_flag("--dry-run", options->dryRun, "Only check whether leases prevent the removal");
  remover->callback([&runner, options] {
    runner = [options](Session& session) { return remove(session, *options); };
  });
}

}  // namespace vfpass::commands
