#include "all_vms.hpp"

#include <algorithm>
#include <exception>
#include <map>
#include <ostream>
#include <set>
#include <sstream>

#include "commands.hpp"
#include "vfpass/base/own_process.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/report/result_report.hpp"

namespace vfpass::commands {
namespace {

report::VmResult notBegun(const ListedVm& vm) {
  report::VmResult result;
  result.vm = vm.name;
  result.uuid = vm.uuid;
  return result;
}

bool hasFailed(const report::VmResult& vm) {
  return vm.code && *vm.code != ExitCode::done && *vm.code != ExitCode::pending;
}

class AllVms {
 public:
  AllVms(Session& whole, const AllRun& run)
      : whole_(whole), run_(run), collects_(run.dryRun || whole.options().json) {
    result_.command = run.command;
  }

  ExitCode runAll() {
    const VmList list = runEach();
    result_.failures = list.failures;
    result_.code = worstOf(codes());
    write(list.none);
    if (stopped_) {
      whole_.endPager();
      whole_.out().flush();  // the signal then ends the process
      throw Cancelled(*stopped_);
    }
    return result_.code;
  }

 private:
  // The signals are those of a pager again when the result is written.
  VmList runEach() {
    const StopSignals stop;
    VmList list = listed();
    for (const ListedVm& vm : list.vms) {
      result_.vms.push_back(goesOn() ? runOne(vm, list.vms.size()) : notBegun(vm));
    }
    return list;
  }

  // Its session ends before those of the VMs, which open database and libvirt themselves.
  VmList listed() {
    std::ostringstream unused;
    Session part(whole_, unused);
    return run_.list(part);
  }

  bool goesOn() {
    try {
      StopSignals::throwIfAsked();
    } catch (const Cancelled& stop) {
      stopped_ = stop;
    }
    return !stopped_ && !(run_.stopOnFailure && std::ranges::any_of(result_.vms, hasFailed));
  }

  report::VmResult runOne(const ListedVm& vm, std::size_t count) {
    if (!run_.dryRun) {
      whole_.note("VM " + printable(vm.name) + ", " + std::to_string(result_.vms.size() + 1) +
                  " of " + std::to_string(count));
    }
    report::VmResult result = notBegun(vm);
    result.begun = true;
    std::ostringstream text;
    std::ostream& out = collects_ ? static_cast<std::ostream&>(text) : whole_.out();
    Session part(whole_, out);
    runPart(part, vm, result);
    result.changed = part.hasChanged();
    result.document = text.str();
    if (!collects_ && part.outputBegun()) {
      out << '\n' << std::flush;
    }
    return result;
  }

  void runPart(Session& part, const ListedVm& vm, report::VmResult& result) {
    const std::string name = vm.uuid ? toString(*vm.uuid) : vm.name;
    try {
      const EndedRun run =
          runAndRecord(part, [&](Session& session) { return run_.run(session, name); });
      result.code = run.code;
      result.message = run.error ? run.error->what() : "";
    } catch (const Cancelled& stop) {
      result.message = stop.what();
      stopped_ = stop;
    } catch (const std::exception& error) {  // as main() ends a command, but only for this VM
      const Error internal(std::string("internal error: ") + error.what(), "");
      result.code = internal.code();
      result.message = internal.what();
      printError(part.err(), internal);
      if (whole_.options().json && !part.outputBegun()) {
        report::writeError(part.out(), internal);
      }
    }
    part.progress().clear();
  }

  [[nodiscard]] std::vector<ExitCode> codes() const {
    std::vector<ExitCode> found;
    for (const auto& vm : result_.vms) {
      found.push_back(vm.code.value_or(ExitCode::done));
    }
    for (const auto& failure : result_.failures) {
      found.push_back(failure.code());
    }
    if (stopped_) {
      found.push_back(ExitCode::failed);
    }
    return found;
  }

  void write(const std::string& none) {
    const bool json = whole_.options().json;
    if (result_.vms.empty() && result_.failures.empty()) {
      whole_.note("nothing to do: " + none);
    }
    if (result_.vms.empty() && !json) {
      return;
    }
    std::ostream& out = run_.dryRun ? whole_.pagedOut() : whole_.out();
    for (const auto& vm : result_.vms) {
      if (!json && !vm.document.empty()) {
        out << vm.document << '\n';
      }
    }
    report::writeAll(out, result_, whole_.style());
  }

  Session& whole_;
  const AllRun& run_;
  bool collects_;  ///< what the command writes for each VM
  report::AllResult result_;
  std::optional<Cancelled> stopped_;
};

}  // namespace

void addAll(CLI::App& command, AllOptions& options, const std::string& description) {
  auto* all = command.add_flag("--all", options.all, description);
  command
      .add_flag("--stop-on-failure", options.stopOnFailure,
                "Begin no further VM after one has failed")
      ->needs(all);
}

std::vector<std::string> specifiedAmong(const CLI::App& command,
                                        const std::vector<std::string>& options) {
  std::vector<std::string> specified;
  for (const std::string& name : options) {
    const CLI::Option* option = command.get_option_no_throw(name);
    if (option != nullptr && option->count() > 0) {
      specified.push_back(name);
    }
  }
  return specified;
}

void requireVmOrAll(const std::string& command, const std::string& vm, const AllOptions& options) {
  const std::string name = "`vfpass " + command + "`";
  if (!options.all && vm.empty()) {
    throw Error(name + " needs an argument: VM or --all", "run `vfpass " + command + " --help`",
                ExitCode::badInput);
  }
  if (options.all && !vm.empty()) {
    throw Error(name + ": VM " + printable(vm) + " excludes --all",
                "name one VM, or omit it to use --all", ExitCode::badInput);
  }
  if (options.all && !options.unsuitable.empty()) {
    throw Error(name + ": --all excludes " + join(options.unsuitable, ", "),
                "omit " + join(options.unsuitable, ", ") + ", or name one VM", ExitCode::badInput);
  }
}

VmList mappedVms(Session& session) {
  const auto& configuration = session.configuration();
  std::set<std::string> names;
  std::set<std::string> files;
  for (const auto& mapping : configuration.mappings) {
    names.insert(mapping.vm);
    files.insert(mapping.file);
  }
  for (const auto& faulty : configuration.faulty) {
    if (!faulty.vm.empty()) {
      names.insert(faulty.vm);
      files.insert(faulty.file);
    }
  }
  VmList list;
  for (const auto& name : names) {
    list.vms.push_back({name, std::nullopt});
  }
  for (const auto& problem : configuration.problems) {
    if (!files.contains(problem.place.file) && !problem.place.file.ends_with("/host.yaml")) {
      session.warn(toString(problem));
      list.failures.emplace_back(toString(problem), config::mistakesOf({problem}),
                                 "correct it; `vfpass check` lists the problems of all files");
    }
  }
  list.none = "no VM has a mapping in " + (session.options().configDirectory / "vms").string();
  return list;
}

VmList leasedVms(const std::vector<Lease>& leases) {
  std::map<Uuid, std::string> names;
  for (const auto& lease : leases) {
    names.emplace(lease.domain, lease.domainName);
  }
  VmList list;
  for (const auto& [uuid, name] : names) {
    list.vms.push_back({name, uuid});
  }
  std::ranges::stable_sort(list.vms, {}, &ListedVm::name);
  list.none = "no VM has leases";
  return list;
}

ExitCode runForAll(Session& session, const AllRun& run) { return AllVms(session, run).runAll(); }

ExitCode worstOf(const std::vector<ExitCode>& codes) {
  for (const ExitCode code : {ExitCode::badInput, ExitCode::refused, ExitCode::failed,
                              ExitCode::unproven, ExitCode::unverified, ExitCode::pending}) {
    if (std::ranges::find(codes, code) != codes.end()) {
      return code;
    }
  }
  return ExitCode::done;
}

}  // namespace vfpass::commands
