// Truncated and mutated XML: every function either succeeds or throws Error.
#include <gtest/gtest.h>

#include "fake/seal_key.hpp"
#include "support.hpp"

namespace vfpass::domain {
namespace {

using namespace std::string_literals;

std::size_t accepted = 0;

void tryEverything(const std::string& xml, const std::vector<Lease>& leases) {
  const auto attempt = [](auto call) {
    try {
      call();
      return true;
    } catch (const Error& error) {
      EXPECT_FALSE(std::string(error.what()).empty());
      return false;
    }
  };
  accepted += attempt([&] { elementDifferences(xml, leases); }) ? 1U : 0U;
  attempt([&] { placeDevices(xml, 3); });
  attempt([&] { carriesLeases(xml, leases, fake::sealKey()); });
  attempt([&] { xmlDiff(xml, xml.substr(xml.size() / 2)); });
  std::string bare;
  if (attempt([&] { bare = withLeases(xml, {}, builtInTemplates(), fake::sealKey()); })) {
    // Removing our elements is idempotent.
    EXPECT_TRUE(attempt([&] {
      EXPECT_EQ(withLeases(bare, {}, builtInTemplates(), fake::sealKey()), bare);
    })) << xml;
  }
  attempt([&] { withLeases(xml, leases, builtInTemplates(), fake::sealKey()); });
  attempt([&] { withReplacedLeases(xml, leases, fake::sealKey()); });
}

class Hostile : public testing::TestWithParam<const char*> {};

TEST_P(Hostile, SurvivesTruncation) {
  const auto xml = readCase(GetParam());
  const auto leases = sampleLeases(readCase("q35.xml"));
  for (std::size_t size = 0; size < xml.size(); size += 41) {
    tryEverything(xml.substr(0, size), leases);
  }
}

TEST_P(Hostile, SurvivesMutations) {
  const auto xml = readCase(GetParam());
  const auto leases = sampleLeases(readCase("q35.xml"));
  std::mt19937 random(42);
  const auto alphabet = "<>/'\"=&;!-[]? \n\t:a0x%\0\xff"s;
  accepted = 0;
  for (int round = 0; round < 400; ++round) {
    auto mutated = xml;
    for (auto changes = random() % 4; changes > 0; --changes) {
      const auto at = random() % mutated.size();
      switch (random() % 4) {
        case 0:
          mutated[at] = alphabet[random() % alphabet.size()];
          break;
        case 1:
          mutated.erase(at, 1 + random() % 40);
          break;
        case 2:
          mutated.insert(at, 1, alphabet[random() % alphabet.size()]);
          break;
        default:
          mutated.insert(at, mutated.substr(random() % mutated.size(), random() % 300));
      }
    }
    tryEverything(mutated, leases);
  }
  EXPECT_GT(accepted, 50U);  // enough mutations must pass the parser
}

INSTANTIATE_TEST_SUITE_P(Cases, Hostile,
                         testing::Values("libvirt-attached.xml", "foreign-metadata.xml",
                                         "odd-formatting.xml", "empty-metadata.xml"));

}  // namespace
}  // namespace vfpass::domain
