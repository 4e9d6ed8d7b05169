#include "world/world.hpp"

#include <algorithm>
#include <stdexcept>

#include "worker/worker.hpp"
#include "world/exchange.hpp"

namespace vfpass::crash {
namespace {

namespace fs = std::filesystem;

constexpr std::chrono::seconds longestCommand{60};

HostFiles emptyHost(const fs::path& root) {
  fs::remove_all(root);
  for (const char* directory :
       {"proc/self", "tmp", "etc/vfpass/vms", "etc/libvirt/qemu", "var/lib", "run"}) {
    fs::create_directories(root / directory);
  }
  HostFiles files(root);
  files.write("dev/null", "");  // the hook opens it for its standard input
  files.write("etc/machine-id", "0123456789abcdef0123456789abcdef\n");
  files.write("etc/vfpass/seal.key", std::string(64, 'a') + "\n");
  fs::permissions(root / "etc/vfpass/seal.key", fs::perms::owner_read | fs::perms::owner_write);
  files.write("proc/sys/kernel/random/boot_id", "boot-1\n");
  return files;
}

HostFiles copiedHost(const HostFiles& from, const fs::path& to) {
  from.copyTo(to);
  return HostFiles(to);
}

Program hookCall(const std::string& domain, const std::string& operation,
                 const std::string& suboperation, const std::string& xml) {
  return {{"hook", domain, operation, suboperation, "-"}, xml};
}

}  // namespace

World::World(const fs::path& root) : files(emptyHost(root)), disk(files), kernel(files) {}

World::World(const World& other, const fs::path& root)
    : World(other, copiedHost(other.files, root)) {}

World::World(const World& other, HostFiles copiedFiles)
    : files(std::move(copiedFiles)),
      disk(files),
      kernel(other.kernel, files),
      fabric(other.fabric),
      boot_(other.boot_) {
  hypervisor.domains = other.hypervisor.domains;
}

void World::define(const std::string& name, const Uuid& uuid) {
  DomainDescription domain;
  domain.uuid = uuid;
  domain.name = name;
  domain.persistent = true;
  domain.persistentXml =
      "<domain type='qemu'>\n  <name>" + name + "</name>\n  <uuid>" + toString(uuid) + R"(</uuid>
  <memory unit='KiB'>229376</memory>
  <os>
    <type arch='x86_64' machine='pc-q35-7.2'>hvm</type>
  </os>
  <devices>
    <controller type='pci' index='0' model='pcie-root'/>
    <controller type='pci' index='5' model='pcie-root-port'>
      <address type='pci' domain='0x0000' bus='0x00' slot='0x10' function='0x0'/>
    </controller>
    <controller type='pci' index='6' model='pcie-root-port'>
      <address type='pci' domain='0x0000' bus='0x00' slot='0x11' function='0x0'/>
    </controller>
    <graphics type='vnc' port='-1' autoport='yes' passwd='s3cret'/>
  </devices>
</domain>
)";
  hypervisor.domains.push_back(domain);
}

DomainDescription& World::domain(const std::string& name) {
  for (auto& domain : hypervisor.domains) {
    if (domain.name == name) {
      return domain;
    }
  }
  throw std::logic_error("no domain " + name);
}

void World::startWithoutHook(const std::string& name) {
  DomainDescription& started = domain(name);
  started.liveXml = started.persistentXml;
  fake::FakeHypervisor::normalizeLive(started);
  started.active = true;
}

void World::endWithoutHook(const std::string& name) {
  domain(name).active = false;
  domain(name).liveXml = {};
}

Result World::run(Program program, const Fault& fault) {
  program.failingAllocation = failingAllocation;
  const bool losesDescriptors = fault.only == ChangeClass::open;
  if (losesDescriptors) {
    program.failingOpen = fault.at;
  }
  Worker worker(files.root(), program);
  Exchange exchange(*this, fault);
  const auto end = std::chrono::steady_clock::now() + longestCommand;
  Worker::Event event = Worker::Event::request;
  do {
    event = worker.wait(std::chrono::duration_cast<std::chrono::milliseconds>(
        end - std::chrono::steady_clock::now()));
    if (event == Worker::Event::request) {
      const auto reply = exchange.serve(worker.request());
      if (reply) {
        worker.answer(*reply);
      } else if (fault.mode != FaultMode::freeze) {
        break;
      }
    }
  } while (event == Worker::Event::request);
  worker.kill();
  Result result = exchange.result();
  result.timedOut = event == Worker::Event::timeout;
  worker.complete(result);
  if (losesDescriptors) {
    result.points = result.opens;
    result.fired = fault.at > 0 && result.opens >= fault.at;
    result.faulted = "open " + std::to_string(fault.at);
  }
  return result;
}

Result World::vfpass(std::vector<std::string> words, const Fault& fault) {
  words.insert(words.begin(), "vfpass");
  return run({std::move(words), ""}, fault);
}

Result World::start(const std::string& name, const Fault& fault) {
  const std::string xml = domain(name).persistentXml;
  Result result = run(hookCall(name, "prepare", "begin", xml), fault);
  if (result.code != 0) {
    // libvirt also calls release after a refused start.
    result.output += run(hookCall(name, "release", "end", xml)).output;
    return result;
  }
  startWithoutHook(name);
  run(hookCall(name, "started", "begin", xml));
  return result;
}

Result World::stop(const std::string& name, const Fault& fault) {
  const std::string xml = domain(name).liveXml;
  endWithoutHook(name);
  return run(hookCall(name, "release", "end", xml), fault);
}

void World::reboot() {
  ++boot_;
  files.write("proc/sys/kernel/random/boot_id", bootId() + "\n");
  files.remove("run/vfpass");
  kernel.reboot();
  fabric.reboot();
  for (const auto& each : hypervisor.domains) {
    endWithoutHook(each.name);
  }
}

void World::failPower(SimulatedDisk::Survivors survivors, std::uint32_t seed) {
  std::mt19937 random(seed);
  disk.failPower(survivors, random);
  const bool synced = disk.takeSync(definitionsDirectory);
  for (auto& each : hypervisor.domains) {
    const auto earlier = syncedDefinitions_.find(each.uuid);
    const bool isLost = survivors == SimulatedDisk::Survivors::synced || (random() & 1U) != 0;
    if (earlier != syncedDefinitions_.end() && !synced && isLost) {
      each.persistentXml = earlier->second;
    }
  }
  syncedDefinitions_.clear();
  reboot();
}

}  // namespace vfpass::crash
