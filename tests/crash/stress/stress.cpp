#include "stress/stress.hpp"

#include <poll.h>

#include <algorithm>
#include <utility>

#include "scenarios/sample_host.hpp"
#include "world/fingerprint.hpp"

namespace vfpass::crash {
namespace {

using Clock = std::chrono::steady_clock;

void setUpHost(World& world, unsigned vms) {
  world.kernel.addPf(firstPf, "0000:00:01.0", "eth0", 7);
  world.kernel.addPf(secondPf, "0000:00:02.0", "eth1", 8);
  for (const char* pf : {firstPf, secondPf}) {
    world.kernel.setVfCount(pf, 4);
    for (unsigned vf = 0; vf < 4; ++vf) {
      const auto last = static_cast<std::uint8_t>(vf);
      world.kernel.settings(pf, vf).mac =
          MacAddress{{2, 0xaa, 0, 0, static_cast<std::uint8_t>(pf == firstPf ? 1 : 2), last}};
    }
  }
  for (unsigned vm = 0; vm < vms; ++vm) {
    const std::string name = "vm" + std::to_string(vm);
    world.define(name, domainUuid(vm + 1));
    writeMapping(
        world, name,
        "vfs:\n" + vfEntry("rail0", "    vlan: {id: " + std::to_string(10 + vm) + "}\n") +
            vfEntry("rail1", "    vlan: {id: " + std::to_string(20 + vm) + "}\n", secondPf));
  }
}

}  // namespace

Stress::Stress(std::uint32_t seed, unsigned killsPer10000, const std::filesystem::path& root)
    : random_(seed), killsPer10000_(killsPer10000), world_(root) {
  setUpHost(world_, vms);
  require(world_.vfpass({"recover"}), "recover");
}

Stress::Process& Stress::launch(const Program& program, const std::string& name) {
  processes_.emplace_back(world_, program);
  processes_.back().name = name;
  log_.push_back("begin " + name);
  return processes_.back();
}

void Stress::launchCommand(std::vector<std::string> words) {
  std::string name;
  for (const auto& word : words) {
    name += (name.empty() ? "" : " ") + word;
  }
  words.insert(words.begin(), "vfpass");
  launch({std::move(words), ""}, name);
}

void Stress::launchHook(const std::string& vm, const std::string& call, const std::string& xml) {
  const std::string suboperation = call == "release" ? "end" : "begin";
  Process& process =
      launch({{"hook", vm, call, suboperation, "-"}, xml}, "hook " + call + ' ' + vm);
  process.hookOf = vm;
  process.hookCall = call;
  locked_.insert(vm);
}

void Stress::startDomain(const std::string& vm) {
  if (!world_.domain(vm).active && !locked_.contains(vm)) {
    launchHook(vm, "prepare", world_.domain(vm).persistentXml);
  }
}

void Stress::stopDomain(const std::string& vm) {
  if (world_.domain(vm).active && !locked_.contains(vm)) {
    const std::string xml = world_.domain(vm).liveXml;
    world_.endWithoutHook(vm);
    launchHook(vm, "release", xml);
  }
}

void Stress::beginAction() {
  const std::string vm = pickVm();
  const unsigned action = pick(12);
  if (action < 3) {
    launchCommand({"attach", vm});
  } else if (action < 5) {
    launchCommand({"detach", vm, "--force"});
  } else if (action < 8) {
    launchCommand({action == 5 ? "recover" : action == 6 ? "gc" : "status"});
  } else if (action < 10) {
    startDomain(vm);
  } else {
    stopDomain(vm);
  }
}

// libvirt holds a domain's lock while its hook runs, and listing takes the locks of all domains.
bool Stress::isLocked(const Message& request) {
  const ChangeClass changeClass = classOf(request);
  if (changeClass != ChangeClass::libvirt && changeClass != ChangeClass::query) {
    return false;
  }
  if (request.at(0) == "list") {
    return !locked_.empty();
  }
  return std::any_of(locked_.begin(), locked_.end(), [&](const std::string& vm) {
    const std::string uuid = toString(world_.domain(vm).uuid);
    return request.at(1) == vm || request.at(1).find(uuid) != std::string::npos;
  });
}

void Stress::receiveRequests(bool mayWait) {
  std::vector<pollfd> sockets;
  std::vector<Process*> polled;
  for (auto& process : processes_) {
    if (!process.waiting) {
      sockets.push_back({process.worker.descriptor(), POLLIN, 0});
      polled.push_back(&process);
    }
  }
  ::poll(sockets.data(), sockets.size(), mayWait ? 2 : 0);
  for (std::size_t at = 0; at < sockets.size(); ++at) {
    if (sockets[at].revents == 0) {
      continue;
    }
    Process& process = *polled[at];
    if (process.worker.wait(std::chrono::milliseconds(0)) == Worker::Event::ended) {
      process.ended = true;
      continue;
    }
    process.waiting = process.worker.request();
    const unsigned slow = pick(100);
    process.due = Clock::now() + std::chrono::microseconds(slow < 3    ? pick(60000)
                                                           : slow < 20 ? pick(3000)
                                                                       : 0);
  }
}

void Stress::serveRequests() {
  std::vector<Process*> ready;
  for (auto& process : processes_) {
    if (process.waiting && process.due <= Clock::now()) {
      ready.push_back(&process);
    }
  }
  std::shuffle(ready.begin(), ready.end(), random_);
  for (Process* process : ready) {
    if (!isLocked(*process->waiting)) {
      serve(*process);
    }
  }
}

void Stress::serve(Process& process) {
  const Message request = *std::exchange(process.waiting, std::nullopt);
  if (pick(10000) < killsPer10000_) {
    ++counts_["killed"];
    log_.push_back("kill " + process.name + " before " + describe(request));
    process.worker.kill();
    process.killed = true;
    process.ended = true;
    return;
  }
  const auto reply = process.exchange.serve(request);
  const ChangeClass changeClass = classOf(request);
  if (changeClass == ChangeClass::kernel || changeClass == ChangeClass::libvirt) {
    log_.push_back("      " + process.name + ": " + describe(request));
    checkRunningDomains();
  }
  process.worker.answer(*reply);
}

void Stress::removeEnded() {
  for (auto at = processes_.begin(); at != processes_.end();) {
    if (at->ended) {
      finish(*at);
      at = processes_.erase(at);
    } else {
      ++at;
    }
  }
}

void Stress::finish(Process& process) {
  Result result = process.exchange.result();
  process.worker.complete(result);
  const std::string kind = process.name.substr(0, process.name.find(" vm"));
  ++counts_[kind + (result.code == 0 ? " succeeded" : process.killed ? " killed" : " refused")];
  log_.push_back("end " + process.name + ' ' + std::to_string(result.code) + ' ' + result.output);
  if (result.signal != 0 && !process.killed) {
    fault(process.name + " ended with signal " + std::to_string(result.signal));
  }
  if (result.output.find("internal error") != std::string::npos) {
    fault(process.name + ": " + result.output);
  }
  if (!process.hookOf.empty()) {
    locked_.erase(process.hookOf);
    finishHook(process, result.code);
  }
}

// libvirt calls `started` after a start and `release` after a refused one.
void Stress::finishHook(const Process& process, int code) {
  if (process.hookCall != "prepare") {
    return;
  }
  const std::string& vm = process.hookOf;
  if (code != 0) {
    launchHook(vm, "release", world_.domain(vm).persistentXml);
    return;
  }
  world_.startWithoutHook(vm);
  checkStarted(vm);
  launchHook(vm, "started", world_.domain(vm).liveXml);
}

void Stress::run(unsigned actions) {
  const std::string before = fingerprint(world_);
  for (unsigned begun = 0; begun < actions || !processes_.empty();) {
    const bool mayBegin = begun < actions && processes_.size() < processesAtOnce;
    if (mayBegin) {
      beginAction();
      if (++begun % 10 == 0) {
        checkLeases();
      }
    }
    receiveRequests(!mayBegin);
    serveRequests();
    removeEnded();
  }
  checkEnd(before);
}

}  // namespace vfpass::crash
