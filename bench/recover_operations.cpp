// recover-operations ROUNDS COUNT...
//
// The time of recover() for COUNT open operations, each of another domain with one VF: stops of
// which the guest has ended and the record is missing, and detaches of which only the end of the
// lease is missing. Every other one is a detach. State database and lock files are real files (in
// $TMPDIR), kernel and libvirt are those of the unit tests. Prints the median of ROUNDS interleaved
// rounds and the ratio to the first COUNT.

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "fake/fake_hypervisor.hpp"
#include "fake/fake_kernel.hpp"
#include "fake/seal_key.hpp"
#include "fake/temporary_folder.hpp"
#include "rounds.hpp"
#include "vfpass/apply/recover.hpp"

namespace {

using namespace vfpass;

constexpr unsigned vfsOfPf = 64;
constexpr std::chrono::milliseconds databaseTimeout{2000};

PciAddress pfAddress(unsigned pf) {
  return {pf / 255, static_cast<std::uint8_t>(1 + pf % 255), 0, 0};
}

Uuid domainOf(unsigned number) {
  const std::string digits = std::to_string(number);
  return *parseUuid("00000000-0000-4000-8000-" + std::string(12 - digits.size(), '0') + digits);
}

void addPfs(fake::FakeKernel& kernel, unsigned count) {
  for (unsigned pf = 0; pf * vfsOfPf < count; ++pf) {
    kernel.addPf(toString(pfAddress(pf)), "ens" + std::to_string(pf), vfsOfPf, vfsOfPf);
  }
}

Lease leaseOf(unsigned number, const PhysicalFunction& pf, state::Database& database) {
  Lease lease;
  lease.domain = domainOf(number);
  lease.domainName = "vm" + std::to_string(number);
  lease.entry = "rail0";
  lease.pf = pf.address;
  lease.pfPath = pf.path;
  vfOf(lease).index = number % vfsOfPf;
  vfOf(lease).count = vfsOfPf;
  lease.device = pf.vfs[number % vfsOfPf].address;
  lease.generation = database.nextGeneration();
  lease.state = LeaseState::running;
  return lease;
}

// A step of it has begun.
void interruptRelease(const Lease& lease, state::Database& database, const std::string& bootId) {
  Lease reserved = lease;
  reserved.state = LeaseState::reserved;
  const std::int64_t operation =
      database.beginOperation({PlanKind::release,
                               lease.domain,
                               lease.domainName,
                               {{RecordLease{reserved}, {RecordLease{lease}}, ""}},
                               {}},
                              bootId);
  database.markSteps(operation, 0, 1, state::StepStatus::started);
}

void interruptDetach(const Lease& lease, state::Database& database, const std::string& bootId) {
  const DropLease drop{lease.domain, lease.entry, lease.generation, lease.pf};
  database.beginOperation({PlanKind::detach, lease.domain, lease.domainName, {{drop, {}, ""}}, {}},
                          bootId);
}

void interruptOperations(unsigned count, fake::FakeKernel& kernel, state::Database& database) {
  const std::string bootId = kernel.bootId();
  database.together([&] {
    for (unsigned number = 0; number < count; ++number) {
      Lease lease = leaseOf(number, kernel.pfs.at(pfAddress(number / vfsOfPf)), database);
      lease.bootId = bootId;
      lease.state = number % 2 == 0 ? LeaseState::running : LeaseState::reserved;
      database.recordLease(lease);
      number % 2 == 0 ? interruptRelease(lease, database, bootId)
                      : interruptDetach(lease, database, bootId);
    }
  });
}

void requireRecovered(unsigned count, const apply::Recovered& recovered,
                      const state::Database& database) {
  const std::size_t leases = database.leases().size();
  if (recovered.done.size() == count && database.openOperations().empty() &&
      leases == (count + 1) / 2) {
    return;
  }
  for (const auto& operation : recovered.unrecovered) {
    std::fprintf(stderr, "%s\n", operation.line.c_str());
  }
  std::fprintf(stderr, "recover-operations: %zu of %u operations were recovered, %zu leases\n",
               recovered.done.size(), count, leases);
  std::exit(1);
}

double measure(unsigned count) {
  const fake::TemporaryFolder folder;
  fake::FakeKernel kernel;
  fake::FakeHypervisor hypervisor;
  addPfs(kernel, count);
  state::Database database(folder.path() / "state", state::Database::Open::createIfMissing,
                           databaseTimeout);
  database.setCurrentBoot(kernel.bootId());
  interruptOperations(count, kernel, database);
  apply::Tools tools{kernel,          database,
                     &hypervisor,     domain::builtInTemplates(),
                     fake::sealKey(), folder.path() / "run"};
  tools.readDefinitions = [] { return Definitions{}; };
  const auto begin = std::chrono::steady_clock::now();
  const auto recovered = apply::recover(tools);
  const std::chrono::duration<double> time = std::chrono::steady_clock::now() - begin;
  requireRecovered(count, recovered, database);
  return time.count();
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<bench::Case> cases;
  bool valid = true;
  for (int i = 2; i < argc; ++i) {
    const auto count = static_cast<unsigned>(std::atoi(argv[i]));
    valid = valid && count != 0;
    char title[40];
    std::snprintf(title, sizeof title, "%6u open operations ", count);
    cases.push_back({title, [count] { return measure(count); }});
  }
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 0;
  if (rounds < 1 || cases.empty() || !valid) {
    std::fprintf(stderr, "usage: recover-operations ROUNDS COUNT...\n");
    return 2;
  }
  bench::measureInterleaved(cases, rounds);
  bench::printMedians(cases, argv[2]);
}
