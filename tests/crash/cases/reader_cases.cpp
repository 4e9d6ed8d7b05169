// A process dies or stands still in its first commit. Read-only commands answer all the same: at
// once, without an error of SQLite, and without changing anything.
#include <iostream>
#include <limits>
#include <map>
#include <set>
#include <sstream>

#include "cases/case.hpp"
#include "cases/interleaving.hpp"
#include "scenarios/sample_host.hpp"
#include "vfpass/base/text.hpp"

namespace vfpass::crash {
namespace {

namespace fs = std::filesystem;

using Words = std::vector<std::string>;
using Act = std::function<Result(World&, const Fault&)>;

const std::vector<Words> readers{{"status"},
                                 {"vf", "list"},
                                 {"plan", "vm0"},
                                 {"check", "vm0"},
                                 {"detach", "vm0", "--dry-run"},
                                 {"gc", "--dry-run"},
                                 {"host", "show"},
                                 {"metrics"}};

struct Reading {
  Result result;
  std::chrono::nanoseconds waited{};
};

using Read = std::function<Reading(const Words&)>;

// Runs a command in a time that only sleeping advances, so that the load of this machine does not
// look like waiting.
Reading read(Scheduler& scheduler, const Words& words) {
  Program program{{"vfpass"}, ""};
  program.arguments.insert(program.arguments.end(), words.begin(), words.end());
  const auto began = Scheduler::now();
  auto& process = scheduler.launch(program, join(words, " "));
  while (!process.ended()) {
    if (scheduler.isReady(process)) {
      scheduler.step(process);
    } else {
      scheduler.passTime();
    }
  }
  Reading reading{process.result(), Scheduler::now() - began};
  scheduler.remove(process);
  return reading;
}

Reading read(World& world, const Words& words) {
  Scheduler scheduler(world, 0);
  return read(scheduler, words);
}

// The contents of all files that vfpass could change.
std::map<std::string, std::string> filesOf(const World& world) {
  std::map<std::string, std::string> files;
  for (const char* directory : {"etc", "run", "tmp", "var"}) {
    for (const auto& entry : fs::recursive_directory_iterator(world.files.root() / directory)) {
      const std::string name = entry.path().lexically_relative(world.files.root()).string();
      files[name] = entry.is_regular_file() ? world.files.read(name) : "";
    }
  }
  return files;
}

bool changesHost(const Result& result) {
  for (const auto& change : result.changes) {
    if (change.find(" file ") == std::string::npos) {
      return true;
    }
  }
  return false;
}

// Which exit statuses are right: those before and after the command that is interrupted, and 3,
// with which a command reports that something is left to do.
using ExitStatuses = std::map<Words, std::set<int>>;

void addExitStatuses(World& world, ExitStatuses& statuses) {
  for (const auto& words : readers) {
    statuses[words].insert({3, read(world, words).result.code});
  }
}

void expectReading(Case& test, const World& world, const Read& readIn, const Words& words,
                   const std::set<int>& statuses) {
  const auto before = filesOf(world);
  const Reading reading = readIn(words);
  const std::string& output = reading.result.output;
  const auto expect = [&](bool holds, const std::string& what) {
    test.expect(holds, "vfpass " + join(words, " ") + ": " + what + "; exit status " +
                           std::to_string(reading.result.code) + "\n" + output);
  };
  expect(statuses.contains(reading.result.code), "an exit status of a command that answers");
  expect(output.find("locking protocol") == std::string::npos, "no failure of SQLite's locks");
  expect(output.find("SQLite code") == std::string::npos, "no failure of SQLite");
  // Trying again after a millisecond is no waiting.
  expect(reading.waited < std::chrono::milliseconds(50),
         "waited " +
             std::to_string(
                 std::chrono::duration_cast<std::chrono::milliseconds>(reading.waited).count()) +
             " ms");
  expect(!changesHost(reading.result) && filesOf(world) == before, "changes nothing");
}

void expectReaders(Case& test, const World& world, const Read& readIn,
                   const ExitStatuses& statuses) {
  for (const auto& words : readers) {
    expectReading(test, world, readIn, words, statuses.at(words));
  }
}

ExitStatuses statusesAround(Case& test, const Act& act) {
  ExitStatuses statuses;
  World copy = test.copy();
  addExitStatuses(copy, statuses);
  require(act(copy, {}), "the command");
  addExitStatuses(copy, statuses);
  return statuses;
}

bool isFileChange(const std::string& fault) { return fault.starts_with("file "); }

// Kills the command before each change of a file until it changes the host, which is after its
// first commit. `then` gets the host, unless its files are as after the previous kill.
void killInFirstCommit(Case& test, const Act& act, const std::function<void(World&)>& then) {
  std::map<std::string, std::string> previous;
  long kills = 0;
  for (long at = 1;; ++at) {
    World copy = test.copy();
    const Result killed = act(copy, {FaultMode::kill, std::nullopt, 0, 0, at});
    if (!killed.fired || !isFileChange(killed.faulted)) {
      break;
    }
    ++kills;
    auto files = filesOf(copy);
    if (files != previous) {
      std::cout << "killed before " << killed.faulted << std::endl;
      then(copy);
    }
    previous = std::move(files);
  }
  test.expect(kills > 10, "the command commits something");
}

void readAfterEachKill(Case& test, const Act& act) {
  const ExitStatuses statuses = statusesAround(test, act);
  killInFirstCommit(test, act, [&](World& world) {
    expectReaders(
        test, world, [&](const Words& words) { return read(world, words); }, statuses);
  });
}

Act commandOf(Words words) {
  return [words](World& world, const Fault& fault) { return world.vfpass(words, fault); };
}

void readersOfKilledAttach(Case& test) {
  setUpVms(test.world, 1);
  readAfterEachKill(test, commandOf({"attach", "vm0"}));
}

void readersOfKilledRecover(Case& test) {
  setUpVms(test.world, 1);
  readAfterEachKill(test, commandOf({"recover"}));
}

void readersOfKilledRelease(Case& test) {
  setUpVms(test.world, 1);
  test.run({"attach", "vm0"});
  test.expectSuccess(test.start("vm0"));
  readAfterEachKill(test,
                    [](World& world, const Fault& fault) { return world.stop("vm0", fault); });
}

// `host apply` at the next boot reads before it writes.
void bootAfterKilledHostApply(Case& test) {
  setUpVms(test.world, 1);
  writeHostFile(test.world, std::string("pfs:\n  - pf: {pci: \"") + firstPf +
                                "\"}\n    virtual-function-count: 6\n");
  const Words apply{"host", "apply", "--allow-disruption"};
  killInFirstCommit(test, commandOf(apply), [&](World& world) {
    world.reboot();
    const Reading reading = read(world, apply);
    test.expect(reading.result.code == 0 && reading.waited < std::chrono::milliseconds(50),
                "host apply after a reboot:\n" + reading.result.output);
    test.expect(world.kernel.findPf(firstPf)->vfs.size() == 6, "six VFs");
  });
}

// An attach stands still before each of its changes until its first one of the host.
void readersBesideWriter(Case& test) {
  setUpVms(test.world, 1);
  const ExitStatuses statuses = statusesAround(test, commandOf({"attach", "vm0"}));
  World world = test.copy();
  Interleaving writer(world);
  long allowed = 0;
  long changes = 0;
  const auto isChange = [](const Message& request) {
    return classOf(request) == ChangeClass::file || classOf(request) == ChangeClass::kernel;
  };
  writer.gate = [&](const Interleaving::Process& process) {
    const Message& request = process.request();
    if (isChange(request) && changes == allowed) {
      return false;
    }
    changes += isChange(request) ? 1 : 0;
    return true;
  };
  auto& attach = writer.launch({"attach", "vm0"});
  const auto standsStill = [&] {
    return attach.ended() || (changes == allowed && isChange(attach.request()));
  };
  for (;; ++allowed) {
    writer.runUntil(standsStill);
    if (!Interleaving::waitsFor(attach, "file")) {
      break;
    }
    std::cout << "before " << describe(attach.request()) << std::endl;
    expectReaders(
        test, world, [&](const Words& words) { return read(writer.scheduler, words); }, statuses);
  }
  test.expect(changes > 10, "attach commits something");
  allowed = std::numeric_limits<long>::max();
  writer.runToEnd();
  test.expectSuccess(attach.result());
}

}  // namespace

std::vector<NamedCase> readerCases() {
  return {{"readers-of-killed-attach", readersOfKilledAttach},
          {"readers-of-killed-recover", readersOfKilledRecover},
          {"readers-of-killed-release", readersOfKilledRelease},
          {"boot-after-killed-host-apply", bootAfterKilledHostApply},
          {"readers-beside-writer", readersBesideWriter}};
}

}  // namespace vfpass::crash
