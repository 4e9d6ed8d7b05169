#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "pf_baseline.hpp"
#include "verification_steps.hpp"
#include "vfpass/base/bounded_read.hpp"
#include "vfpass/base/kernel_formats.hpp"
#include "vfpass/base/scope_guard.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/host/program_output.hpp"
#include "vfpass/inventory/read_inventory.hpp"
#include "vfpass/report/verify_report.hpp"
#include "vfpass/state/locks.hpp"
#include "vfpass/state/verification_records.hpp"
#include "vfpass/verify/host_baseline.hpp"

namespace vfpass::commands {
namespace {

using Clock = std::chrono::steady_clock;

// Devices of this host, by PCI address, netdev or RDMA device.
std::size_t namedFunction(const Topology& host, const std::string& name) {
  const auto isNamed = [&](const auto& device) { return device.name == name; };
  const auto found = std::ranges::find_if(host.functions, [&](const Device& function) {
    return parsePciAddress(name) == function.address ||
           std::ranges::any_of(function.netdevs, isNamed) ||
           std::ranges::any_of(function.rdma, isNamed);
  });
  if (found == host.functions.end()) {
    throw Error("--baseline: not on this host: " + printable(name),
                "specify a PCI address, a netdev or an RDMA device; `vfpass topo` lists them",
                ExitCode::badInput);
  }
  return static_cast<std::size_t>(found - host.functions.begin());
}

const Device& requirePf(const Topology& host, std::size_t function) {
  const Device& pf = host.functions[function];
  if (pf.physicalFunction || !isPf(pf)) {
    throw Error("--baseline: " + toString(pf.address) + " is not a PF",
                "specify a PF; `vfpass pf list` lists them", ExitCode::badInput);
  }
  return pf;
}

// A guest that has the GPU would lose it to the host's driver.
const Device& requireFreeGpu(Session& session, const Topology& host, std::size_t function) {
  const Device& gpu = host.functions[function];
  const std::string name = "GPU " + toString(gpu.address);
  if (gpu.role != FunctionRole::gpu) {
    throw Error("--baseline: " + toString(gpu.address) + " is not a GPU",
                "specify a GPU after the PF; `vfpass topo` lists them", ExitCode::badInput);
  }
  const auto leases = session.readLeases();
  const auto lease = std::ranges::find(leases, gpu.address, &Lease::device);
  if (lease != leases.end()) {
    throw Error(name + ": leased to domain " + printable(lease->domainName),
                "measure the PF without it, or before `vfpass attach`", ExitCode::refused);
  }
  if (gpu.driver.empty() || gpu.driver.find("vfio") != std::string::npos) {
    throw Error(name + ": the host has no driver for it" +
                    (gpu.driver.empty() ? "" : ", it is bound to " + printable(gpu.driver)),
                "measure the PF without it, or while nvidia is its driver", ExitCode::refused);
  }
  return gpu;
}

std::chrono::milliseconds leftUntil(Clock::time_point end) {
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now());
  return std::max(left, std::chrono::milliseconds(0));
}

// VFs are looked up each time: another command may create some on another port meanwhile.
std::vector<Holder> holdersOfCard(Session& session, const std::vector<PciAddress>& card) {
  std::vector<PciAddress> functions = card;
  for (const PciAddress& pf : card) {
    for (const auto& [index, vf] : session.kernel().vfAddresses(pf)) {
      functions.push_back(vf);
    }
  }
  return session.kernel().findHolders(functions);
}

// The measurement of the host itself is that of the PF's node. Only this process and the probe.
void runOnNodeOf(const Topology& host, const Device& pf) {
  const auto node = std::ranges::find(host.processors.nodes, pf.numaNode, &NumaNode::number);
  if (host.processors.nodes.size() < 2 || node == host.processors.nodes.end()) {
    return;
  }
  cpu_set_t cpus;
  CPU_ZERO(&cpus);
  for (const unsigned cpu : cpusInMask(node->cpuMask)) {
    CPU_SET(cpu, &cpus);  // at most 1023, the largest that the set has
  }
  ::sched_setaffinity(0, sizeof cpus, &cpus);  // an empty set is refused and changes nothing
}

// The probe writes its document to stdout; libraries may write lines to stderr before and after it.
std::string_view documentIn(std::string_view output) {
  const auto line = output.starts_with('{') ? 0 : output.find("\n{");
  const auto end = output.rfind('}');
  return line == std::string_view::npos || end == std::string_view::npos || end < line
             ? std::string_view()
             : output.substr(line, end + 1 - line);
}

nlohmann::json probeReport(const std::string& output) {
  constexpr JsonLimits limits{std::size_t{1} << 20U, 32};
  try {
    return parseBoundedJson(documentIn(output), limits);
  } catch (const JsonRefused& refused) {
    throw Error(std::string("vfpass-probe wrote no report on this host: ") + refused.what(),
                "run `vfpass-probe inventory` by hand", ExitCode::unverified);
  }
}

[[noreturn]] void throwNoReport(const std::string& program, const BaselineRequest& request,
                                Clock::time_point end) {
  if (leftUntil(end).count() == 0) {
    throw Error(
        "--baseline: not finished within " + std::to_string(request.timeout.count()) + " seconds",
        "specify more with --timeout", ExitCode::unverified);
  }
  throw Error(printable(program) + ": cannot be run, or does not finish",
              "check with --probe that the program exists", ExitCode::unverified);
}

verify::RunHostProbe probeOnHost(Session& session, const BaselineRequest& request,
                                 Clock::time_point end) {
  return [&session, &request, end](const std::vector<std::string>& arguments) {
    session.progress().tick();
    std::vector<std::string> command{std::filesystem::absolute(request.probe).string()};
    command.insert(command.end(), arguments.begin(), arguments.end());
    const auto left = leftUntil(end);
    const auto output = left.count() > 0 ? host::programOutput(command, left) : std::nullopt;
    if (!output) {
      throwNoReport(command.front(), request, end);
    }
    return probeReport(*output);
  };
}

std::string hostName() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? printable(name.data()) : "";
}

std::string driverText(const host::Root& root, const Device& pf) {
  const auto version = root.readText("sys/module/" + pf.driver + "/version", 64);
  return pf.driver + (version ? " " + printable(*version) : "");
}

Baseline identityOf(const host::Root& root, const Topology& host, std::size_t function) {
  const Device& pf = host.functions[function];
  Baseline baseline;
  baseline.host = hostName();
  baseline.machine = root.readText("etc/machine-id").value_or("");
  baseline.pf = pf.address;
  baseline.serial = printable(pf.serial);
  baseline.driver = driverText(root, pf);
  if (!pf.rdma.empty()) {
    baseline.guid = pf.rdma.front().nodeGuid;
    baseline.firmware = pf.rdma.front().firmware;
  }
  baseline.settings = bandwidthSettings(root, host, function);
  return baseline;
}

void keepBaseline(Session& session, const Baseline& baseline) {
  std::ostringstream text;
  report::writeBaseline(text, baseline, {.json = true});
  state::keepBaseline(session.options().stateDirectory, baseline.pf, text.str());
}

// Under the PF's lock, so that no other command of vfpass changes the PF or its VFs meanwhile.
Baseline measureLocked(Session& session, const BaselineRequest& request, const PciAddress& address,
                       Clock::time_point end) {
  const host::Root root = session.root();
  const Topology host = inventory::readTopology(root);
  const std::size_t function = namedFunction(host, toString(address));
  verify::BaselinePlan plan{address, std::nullopt, request.messageBytes, request.iterations,
                            request.timeout};
  if (request.devices.size() > 1) {
    plan.gpu = requireFreeGpu(session, host, namedFunction(host, request.devices[1])).address;
    requireGpuModules(root, *plan.gpu);
  }
  runOnNodeOf(host, host.functions[function]);
  Baseline baseline = identityOf(root, host, function);
  const auto card = functionsOfCard(host, address);
  const auto lookForUsers = [&] {
    addUsers([&] { return holdersOfCard(session, card); }, baseline);
  };
  // No probe runs when a part begins: it would be a user as well.
  baseline.figures = verify::measureBaseline(probeOnHost(session, request, end), plan,
                                             [&](const std::string& part) {
                                               session.progress().show(part);
                                               lookForUsers();
                                             });
  lookForUsers();
  baseline.time = utcNow();
  return baseline;
}

}  // namespace

ExitCode measurePf(Session& session, const BaselineRequest& request) {
  session.requireChangesPossible("verify --baseline");
  const auto end = Clock::now() + request.timeout;
  const Topology host = inventory::readTopology(session.root(), host::Serials::skip);
  const PciAddress pf = requirePf(host, namedFunction(host, request.devices.front())).address;
  session.operations().begin(events::Operation::verify);
  session.operations().addPf(pf);
  const ScopeGuard clearLine([&session] { session.progress().clear(); });
  const auto locks = state::lockPfs(session.options().runDirectory, {pf},
                                    std::min(deadlines::lock, leftUntil(end)));
  const Baseline baseline = measureLocked(session, request, pf, end);
  keepBaseline(session, baseline);
  session.progress().clear();
  report::writeBaseline(session.out(), baseline, session.style());
  session.operations().done("baseline of PF " + toString(pf));
  return ExitCode::done;
}

}  // namespace vfpass::commands
