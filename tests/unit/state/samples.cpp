#include "samples.hpp"

#include <limits>

#include "unit/values.hpp"

namespace vfpass::state {
namespace {

constexpr std::uint64_t any32 = std::numeric_limits<std::uint32_t>::max();
constexpr std::uint64_t any64 = std::numeric_limits<std::uint64_t>::max();

}  // namespace

Uuid uuidOf(std::uint8_t number) {
  Uuid uuid;
  uuid.bytes.fill(number);
  return uuid;
}

Lease sampleLease(std::uint8_t domain, const std::string& name, unsigned vfIndex) {
  Lease lease;
  lease.domain = uuidOf(domain);
  lease.domainName = "train" + std::to_string(domain);
  lease.entry = name;
  lease.pf = PciAddress{0, 0x3b, 0, 0};
  lease.pfPath = "pci0000:3a/0000:3a:00.0/0000:3b:00.0";
  lease.pfSerial = "MT2024X00000";
  vfOf(lease).index = vfIndex;
  lease.device = PciAddress{0x10000, 0x3b, 1, 2};
  vfOf(lease).infiniband = true;
  vfOf(lease).settings = everySetting();
  vfOf(lease).required = {Attribute::mac, Attribute::vlan};
  vfOf(lease).refused = {Attribute::spoofCheck, Attribute::trust};
  lease.allow = {Allowance::sharedIommuGroup, Allowance::netdevInUse};
  lease.managed = true;
  vfOf(lease).interfaceForm = true;
  vfOf(lease).teamingWith = "net0";
  vfOf(lease).migrationDriver = "mlx5_vfio_pci";
  lease.persistent = domain % 2 == 0;
  lease.guest = {PciAddress{0, 5, 0, 0}, RootPort{5, PciAddress{0, 0, 2, 1}, true}, {}};
  lease.edits = {{"hard-limit", EditPlace::memtune, {"<hard_limit unit='KiB'>1</hard_limit>"}}};
  lease.original = {"mlx5_core", "", only(everySetting(), {Attribute::mac}), true};
  lease.generation = 1;
  lease.state = LeaseState::starting;
  lease.bootId = "0b5a0b1c-0000-4000-8000-000000000001";
  return lease;
}

Plan samplePlan(std::uint8_t domain) {
  const PciAddress pf{0, 0x3b, 0, 0};
  const PciAddress vf{0, 0x3b, 0, 1};
  const Lease lease = sampleLease(domain, "rail0", domain);
  const ConfigureVfs configure{
      pf, {{0, vfOf(lease).settings, vfOf(lease).required}, {1, {}, {}}}, neutralSettings(false)};
  const BindDriver bind{vf, "vfio-pci", "vfio-pci"};
  Plan plan;
  plan.kind = PlanKind::attach;
  plan.domain = lease.domain;
  plan.domainName = lease.domainName;
  plan.steps = {
      {CreateVfs{pf, 8, true, std::nullopt, pf},
       {RemoveVfs{pf, false}, CreateVfs{pf, 0, true}},
       "the PF has none",
       true},
      {configure, {configure}, "as the mapping says", false},
      {bind, {BindDriver{vf, "mlx5_core", ""}, ResetFunction{vf}}, "for the guest", true},
      {RecordLease{lease}, {DropLease{lease.domain, "rail0", 1}}, "own it", false},
      {EditDomain{lease.domain, {lease}}, {EditDomain{lease.domain, {}}}, "inject it", false}};
  return plan;
}

std::uint64_t Generator::number(std::uint64_t maximum) {
  return std::uniform_int_distribution<std::uint64_t>(0, maximum)(engine_);
}

std::string Generator::driver() {
  static const std::vector<std::string> names{"", "mlx5_core", "vfio-pci", "nvidia", "8139too"};
  return names[number(names.size() - 1)];
}

std::string Generator::text() {
  static const std::vector<std::string> pieces = {
      "a", "rail0", "\"", "\\", "\n", "\x1b[31m", "ü", "€", "𝄞", "\xff", "\xc3", "\xed\xa0\x80"};
  std::string text;
  for (std::uint64_t left = number(4); left > 0; --left) {
    text += flag() ? pieces[number(pieces.size() - 1)] : std::string(1, '\0');
  }
  return text;
}

PciAddress Generator::pci() {
  return {static_cast<std::uint32_t>(flag() ? number(any32) : 0),
          static_cast<std::uint8_t>(number(255)), static_cast<std::uint8_t>(number(31)),
          static_cast<std::uint8_t>(number(7))};
}

Uuid Generator::uuid() {
  Uuid uuid;
  for (auto& byte : uuid.bytes) {
    byte = static_cast<std::uint8_t>(number(255));
  }
  return uuid;
}

void Generator::fill(MacAddress& mac) {
  for (auto& byte : mac.bytes) {
    byte = static_cast<std::uint8_t>(number(255));
  }
}

void Generator::fill(Vlan& vlan) {
  vlan = {static_cast<std::uint16_t>(number(4094)), static_cast<std::uint8_t>(number(7)),
          flag() ? VlanProtocol::dot1q : VlanProtocol::dot1ad};
}

void Generator::fill(Rate& rate) {
  rate = {static_cast<std::uint32_t>(number(any32)), static_cast<std::uint32_t>(number(any32))};
}

void Generator::fill(bool& value) { value = flag(); }

void Generator::fill(LinkState& state) { state = static_cast<LinkState>(number(2)); }

void Generator::fill(Guid& guid) { guid.value = number(any64); }

void Generator::fill(std::uint16_t& value) { value = static_cast<std::uint16_t>(number(2048)); }

VfSettings Generator::settings() {
  VfSettings settings;
  forEachAttribute([&]<typename Value>(const AttributeRow<Value>& row) {
    Value value{};
    fill(value);
    settings.*row.member = perhaps(value);
  });
  return settings;
}

std::set<Attribute> Generator::attributes() {
  std::set<Attribute> chosen;
  for (const Attribute attribute : allAttributes) {
    if (flag()) {
      chosen.insert(attribute);
    }
  }
  return chosen;
}

std::vector<GuestController> Generator::controllers() {
  std::vector<GuestController> all(number(3));
  for (GuestController& each : all) {
    each = {
        static_cast<ControllerModel>(number(3)),     static_cast<unsigned>(number(255)), pci(),
        perhaps(static_cast<unsigned>(number(255))), static_cast<unsigned>(number(255)), flag()};
  }
  return all;
}

std::variant<LeasedVf, LeasedFunction> Generator::device() {
  if (flag()) {
    return LeasedFunction{perhaps(std::string("nvgrace_gpu_vfio_pci")),
                          perhaps(static_cast<unsigned>(number(255)))};
  }
  return LeasedVf{static_cast<unsigned>(number(any32)),
                  static_cast<unsigned>(number(any32)),
                  flag(),
                  settings(),
                  attributes(),
                  attributes(),
                  flag(),
                  perhaps(text()),
                  perhaps(std::string(mlx5MigrationDriver))};
}

Lease Generator::lease() {
  Lease lease;
  lease.domain = uuid();
  lease.domainName = text();
  lease.entry = "rail-" + std::to_string(number(any64));
  lease.pf = pci();
  lease.pfPath = text();
  lease.pfSerial = text();
  lease.part = device();
  lease.device = pci();
  lease.allow = flag() ? std::set{static_cast<Allowance>(number(3))} : std::set<Allowance>{};
  lease.managed = flag();
  lease.persistent = flag();
  lease.guest = {pci(), perhaps(RootPort{static_cast<unsigned>(number(255)), pci(), flag()}),
                 controllers()};
  lease.original = {driver(), driver(), settings(), flag()};
  lease.generation = number(any64);
  lease.state = static_cast<LeaseState>(number(2));
  lease.bootId = text();
  return lease;
}

ConfigureVfs Generator::configure() {
  ConfigureVfs action{pci(), {}};
  for (std::uint64_t left = number(3); left > 0; --left) {
    action.vfs.push_back({static_cast<unsigned>(number(any32)), settings(), attributes()});
  }
  return action;
}

EditDomain Generator::edit() {
  EditDomain action{uuid(), {}};
  for (std::uint64_t left = number(3); left > 0; --left) {
    action.leases.push_back(lease());
  }
  return action;
}

Action Generator::action() {
  static_assert(std::variant_size_v<Action> == 19, "a new kind of action needs a case here");
  switch (number(18)) {
    case 0:
      return CreateVfs{pci(), static_cast<unsigned>(number(any32)), flag(), perhaps(flag()),
                       perhaps(pci())};
    case 1:
      return RemoveVfs{pci(), true};
    case 2:
      return configure();
    case 3:
      return BindDriver{pci(), driver(), driver()};
    case 4:
      return ResetFunction{pci()};
    case 5:
      return RecordLease{lease()};
    case 6:
      return DropLease{uuid(), text(), number(any64), perhaps(pci()),
                       perhaps(HandedOver{text(), pci(), perhaps(3U), flag()})};
    case 7:
      return EditLiveMetadata{uuid(), edit().leases};
    case 8:
      return PlugDevice{lease()};
    case 9:
      return UnplugDevice{lease()};
    case 10:
      return SetEswitchMode{pci(), static_cast<EswitchMode>(number(1))};
    case 11:
      return SetMtu{pci(), static_cast<unsigned>(number(any32))};
    case 12:
      return SetLinkUp{pci(), flag()};
    case 13:
      return AddSoftRoceLink{text(), text()};
    case 14:
      return RemoveSoftRoceLink{text(), text(), perhaps(static_cast<std::uint32_t>(number(any32)))};
    case 15:
      return RecordSoftRoce{
          {text(), text(), perhaps(static_cast<std::uint32_t>(number(any32))), text()}};
    case 16:
      return ForgetSoftRoce{text()};
    case 17:
      return SetPartition{
          {pci(), pci()},
          {static_cast<unsigned>(number(any32)), static_cast<unsigned>(number(any32))},
          flag()};
    default:
      return edit();
  }
}

}  // namespace vfpass::state
