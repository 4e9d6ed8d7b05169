#include "guest_tools.hpp"

#include <gtest/gtest.h>

#include <string>

namespace vfpass::verify {
namespace {

// Output of ib_write_bw of perftest 4.5 (Debian 12).
const std::string bandwidth =
    "---------------------------------------------------------------------------------------\n"
    "                    RDMA_Write BW Test\n"
    " Dual-port       : OFF\t\tDevice         : rxe0\n"
    " Number of qps   : 1\t\tTransport type : IB\n"
    "---------------------------------------------------------------------------------------\n"
    " #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]\n"
    " 65536      1000             0.75               0.72   \t\t   0.001382\n"
    "---------------------------------------------------------------------------------------\n";

const std::string latency =
    " #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    t_avg[usec]    "
    "t_stdev[usec]   99% percentile[usec]   99.9% percentile[usec] \n"
    " 8       1000          20.11          410.70       22.35    \t       23.80       \t12.30\t\t"
    "40.85   \t\t410.70 \n";

std::string with(std::string text, const std::string& from, const std::string& to) {
  return text.replace(text.find(from), from.size(), to);
}

TEST(ReadToolsTest, ReadsAverageBandwidth) {
  EXPECT_EQ(readPerftestBandwidth(bandwidth, 65536), 0.72);
  EXPECT_EQ(readPerftestBandwidth(bandwidth, 4096), std::nullopt) << "another size";
  for (const char* lie : {"0.000000", "-1", "nan", "inf", "1e300", "0.72x", "", "1 2"}) {
    EXPECT_EQ(readPerftestBandwidth(with(bandwidth, "0.72", lie), 65536), std::nullopt) << lie;
  }
  EXPECT_EQ(readPerftestBandwidth("", 65536), std::nullopt);
  EXPECT_EQ(readPerftestBandwidth(with(bandwidth, "#bytes", "#octets"), 65536), std::nullopt);
  EXPECT_EQ(readPerftestBandwidth(with(bandwidth, "Gb/sec]   Msg", "MB/sec]   Msg"), 65536),
            std::nullopt)
      << "another unit";
}

TEST(ReadToolsTest, ReadsMedianAndTailLatency) {
  const auto read = readPerftestLatency(latency, 8);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->typicalMicroseconds, 22.35);
  EXPECT_EQ(read->tailMicroseconds, 40.85);
  EXPECT_FALSE(readPerftestLatency(with(latency, "22.35", "0.00"), 8));
  EXPECT_FALSE(readPerftestLatency(with(latency, "410.70", ""), 8)) << "a column is missing";
}

// The end of the output of all_reduce_perf of nccl-tests.
TEST(ReadToolsTest, ReadsAllReduceSummary) {
  const std::string text =
      "   134217728      33554432     float     sum      -1   1337.4  100.36  175.63      0\n"
      "# Out of bounds values : 0 OK\n"
      "# Avg bus bandwidth    : 175.502 \n#\n";
  const auto read = readAllReduce(text);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->busGigabytesPerSecond, 175.502);
  EXPECT_TRUE(read->right);
  EXPECT_FALSE(readAllReduce(with(text, "0 OK", "3 FAILED"))->right);
  EXPECT_FALSE(readAllReduce(with(text, "0 OK", "3 OK"))->right);
  EXPECT_FALSE(readAllReduce(with(text, "0 OK", "0 FAILED"))->right);
  EXPECT_FALSE(readAllReduce(with(text, "# Avg", "# avg")));
  EXPECT_FALSE(readAllReduce(with(text, "# Out", "")));
}

}  // namespace
}  // namespace vfpass::verify
