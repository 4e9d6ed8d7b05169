#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "support.hpp"

namespace vfpass::config {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;
using testing::UnorderedElementsAre;

ReadMapping readNccl(const std::string& lines) { return readMappingText(withVf("", lines)); }

// One problem per line of `nccl: {environment: ...}`; its place is left out.
std::vector<std::string> ncclProblems(const std::string& environment,
                                      const std::string& otherKeys = "") {
  std::vector<std::string> problems =
      readNccl("nccl: {" + otherKeys + "environment: {" + environment + "}}\n").problems;
  for (std::string& problem : problems) {
    problem.erase(0, problem.find(": ") + 2);
  }
  return problems;
}

std::string problemWith(const std::string& environment) {
  const auto problems = ncclProblems(environment);
  return problems.size() == 1 ? problems.front() : std::to_string(problems.size()) + " problems";
}

TEST(NcclReader, TakesValuesAsWritten) {
  const ReadMapping read = readNccl(
      "nccl:\n"
      "  gid-index: 3\n"
      "  environment:\n"
      "    NCCL_SOCKET_IFNAME: =eth0,eth1\n"
      "    NCCL_IB_SPLIT_DATA_ON_QPS: 0\n"
      "    NCCL_RAS_TIMEOUT_FACTOR: 1.50\n"
      "    NCCL_SOCKET_MAGIC: \"0x2a\"\n"
      "    NCCL_DEBUG_TIMESTAMP_FORMAT: \"\"\n");
  EXPECT_THAT(read.problems, IsEmpty());
  EXPECT_EQ(read.mapping.nccl.gidIndex, 3U);
  EXPECT_THAT(
      read.mapping.nccl.environment,
      ElementsAre(Pair("NCCL_DEBUG_TIMESTAMP_FORMAT", ""), Pair("NCCL_IB_SPLIT_DATA_ON_QPS", "0"),
                  Pair("NCCL_RAS_TIMEOUT_FACTOR", "1.50"), Pair("NCCL_SOCKET_IFNAME", "=eth0,eth1"),
                  Pair("NCCL_SOCKET_MAGIC", "0x2a")));
}

TEST(NcclReader, SuggestsNearestNameForUnknownVariable) {
  EXPECT_EQ(problemWith("NCCL_IB_TX: 41"), "unknown key `NCCL_IB_TX`; did you mean `NCCL_IB_TC`?");
  EXPECT_EQ(problemWith("nccl_debug: WARN"),
            "unknown key `nccl_debug`; did you mean `NCCL_DEBUG`?");
  EXPECT_EQ(problemWith("NCCL_IB_MERGE_VF: 0"),
            "unknown key `NCCL_IB_MERGE_VF`; did you mean `NCCL_IB_MERGE_VFS`?");
}

// Since 1.1 valijson puts keys in quotes to name a place.
TEST(NcclReader, FindsValueBesideKeyWithQuotes) {
  EXPECT_THAT(ncclProblems("'\"NCCL_IB_TC\"': 1, NCCL_IB_TC: [1]"),
              UnorderedElementsAre(HasSubstr("unknown key"), HasSubstr("found a list")));
}

// The list of all known keys would fill the screen.
TEST(NcclReader, DoesNotListAllVariables) {
  EXPECT_EQ(problemWith("UCX_TLS: tcp"),
            "unknown key `UCX_TLS`; expected environment variables of NCCL (`NCCL_...`), each with "
            "a value");
}

TEST(NcclReader, TakesVariablesThatItDoesNotKnow) {
  for (const char* variable : {"NCCL_GIN_TYPE", "NCCL_LL128_C2C", "NCCL_SOMETHING_NEW"}) {
    const ReadMapping read = readNccl("nccl: {environment: {" + std::string(variable) + ": 3}}\n");
    EXPECT_THAT(read.problems, IsEmpty()) << variable;
    EXPECT_THAT(read.mapping.nccl.environment, ElementsAre(Pair(variable, "3")));
  }
}

TEST(NcclReader, ChecksValuesOfVariablesThatItDoesNotKnow) {
  EXPECT_THAT(problemWith("NCCL_GIN_ENABLE: true"), HasSubstr("found the boolean `true`"));
  EXPECT_THAT(problemWith("NCCL_GIN_TYPE: \"1 \""),
              HasSubstr("NCCL_GIN_TYPE: the value begins or"));
}

TEST(NcclReader, TakesNamesThatDifferInThreeLettersFromKnownOnes) {
  EXPECT_EQ(problemWith("NCCL_P2P_LEVELXX: 1"),
            "unknown key `NCCL_P2P_LEVELXX`; did you mean `NCCL_P2P_LEVEL`?");
  EXPECT_THAT(ncclProblems("NCCL_P2P_LEVELXXX: 1"), IsEmpty());
}

TEST(NcclReader, RefusesNamesThatNoVariableOfNcclHas) {
  for (const char* name : {"NCCL_", "NCCL_debug_x_y_z", "NCCL-GIN-TYPE", "XNCCL_GIN_TYPE"}) {
    EXPECT_THAT(problemWith(std::string(name) + ": 1"), HasSubstr("unknown key")) << name;
  }
}

TEST(NcclReader, RefusesVariablesThatAnotherKeySets) {
  EXPECT_THAT(ncclProblems("NCCL_IB_GID_INDEX: 3", "gid-index: 3, "),
              ElementsAre("NCCL_IB_GID_INDEX: `gid-index:` sets it, too; remove one of them"));
  EXPECT_THAT(ncclProblems("NCCL_IB_TC: 41, NCCL_IB_SL: 0, NCCL_IB_QPS_PER_CONNECTION: 4, "
                           "NCCL_IB_TIMEOUT: 22",
                           "traffic-class: 41, service-level: 0, qps: 4, timeout: 22, "),
              ElementsAre(HasSubstr("`traffic-class:`"), HasSubstr("`service-level:`"),
                          HasSubstr("`qps:`"), HasSubstr("`timeout:`")));
  EXPECT_THAT(ncclProblems("NCCL_IB_GID_INDEX: -1", "qps: 4, "), IsEmpty());
}

TEST(NcclReader, RefusesVariablesThatGuestSetupOrOnlyTheJobCanSet) {
  EXPECT_EQ(problemWith("NCCL_TOPO_FILE: /tmp/topology.xml"),
            "NCCL_TOPO_FILE: `vfpass guest-setup` sets it, to the topology file that it writes; "
            "remove it");
  EXPECT_EQ(problemWith("NCCL_CONF_FILE: /tmp/nccl.conf"),
            "NCCL_CONF_FILE: it has no effect in /etc/nccl.conf; set it in the environment of the "
            "job");
}

TEST(NcclReader, RefusesControlCharactersInValues) {
  for (const char* value : {R"("a\nNCCL_DEBUG=TRACE")", R"("a\r")", R"("a\tb")", R"("a\0b")",
                            R"("\x1b[2J")", R"("a\u2028b")"}) {
    EXPECT_THAT(problemWith("NCCL_DEBUG_FILE: " + std::string(value)),
                HasSubstr("control or invisible character"))
        << value;
  }
}

TEST(NcclReader, RefusesValuesLongerThanNcclReads) {
  EXPECT_THAT(ncclProblems("NCCL_DEBUG_FILE: /" + std::string(1022, 'x')), IsEmpty());
  EXPECT_THAT(problemWith("NCCL_DEBUG_FILE: /" + std::string(1023, 'x')),
              HasSubstr("expected a text or number of at most 1023 bytes"));
  EXPECT_THAT(problemWith("NCCL_DEBUG_FILE: /" + std::string(5000, 'x')),
              HasSubstr("in one value, found 5001"));
  // 512 characters of 2 bytes.
  std::string umlauts;
  for (int i = 0; i < 512; ++i) {
    umlauts += "ü";
  }
  EXPECT_EQ(problemWith("NCCL_DEBUG_FILE: " + umlauts),
            "NCCL_DEBUG_FILE: the value has 1024 bytes; NCCL reads 1023; shorten it");
}

TEST(NcclReader, RefusesValuesThatNcclWouldMisread) {
  EXPECT_EQ(problemWith("NCCL_DEBUG: \"WARN \""),
            "NCCL_DEBUG: the value begins or ends with a space, which NCCL does not remove; remove "
            "the space");
  EXPECT_THAT(problemWith("NCCL_DEBUG: \" WARN\""), HasSubstr("begins or ends with a space"));
  // strtoll() reads `true` as 0.
  EXPECT_EQ(problemWith("NCCL_IB_DISABLE: true"),
            "expected a text or number of at most 1023 bytes, found the boolean `true`; if this is "
            "intended, put it in quotes");
  EXPECT_THAT(problemWith("NCCL_DEBUG: [WARN]"), HasSubstr("expected a text or number"));
  EXPECT_THAT(problemWith("NCCL_DEBUG: {a: b}"), HasSubstr("expected a text or number"));
  EXPECT_THAT(problemWith("NCCL_DEBUG: "), HasSubstr("expected a text or number"));
}

TEST(NcclReader, RefusesAnythingButABlock) {
  for (const char* text : {"nccl: {environment: NCCL_DEBUG=WARN}\n", "nccl: {environment: [a]}\n",
                           "nccl: {environment: }\n"}) {
    EXPECT_THAT(readNccl(text).problems, ElementsAre(HasSubstr("expected environment variables")))
        << text;
  }
  EXPECT_THAT(readNccl("nccl: {environment: {}}\n").problems, IsEmpty());
}

TEST(NcclReader, SchemaNamesOnlyNcclVariables) {
  const json schema = json::parse(mappingSchema());
  const json& variables = schema["definitions"]["nccl"]["properties"]["environment"]["properties"];
  for (const auto& [name, value] : variables.items()) {
    EXPECT_THAT(name, testing::MatchesRegex("NCCL_[A-Z0-9_]+"));
    EXPECT_EQ(value, json({{"$ref", "#/definitions/nccl-value"}})) << name;
  }
  // Those that a cloud's published job sets (bench/coverage.md).
  for (const char* name :
       {"NCCL_CROSS_NIC", "NCCL_SOCKET_NTHREADS", "NCCL_DEBUG", "NCCL_CUMEM_ENABLE",
        "NCCL_IB_SPLIT_DATA_ON_QPS", "NCCL_IB_QPS_PER_CONNECTION", "NCCL_IB_GID_INDEX",
        "NCCL_IB_TC", "NCCL_IB_SL", "NCCL_IB_TIMEOUT", "NCCL_NET_PLUGIN", "NCCL_SOCKET_IFNAME",
        "NCCL_ALGO", "NCCL_IGNORE_CPU_AFFINITY"}) {
    EXPECT_TRUE(variables.contains(name)) << name;
  }
}

}  // namespace
}  // namespace vfpass::config
