// Machine descriptions: what is read, what is interpolated, and every error.
#include "weft/machine.h"

#include <cmath>
#include <fstream>

#include "errors/lines.h"
#include "support/expect_error.h"

namespace weft {
namespace {

using test::lines;

const std::string kLeast = "processors = 1\nbytes_per_second = 1e10\n[peak]\nf32 = 1e11\n";
constexpr const char* kSee = "see docs/machines.md, or machines/h200x8.toml for a complete one";

Machine parsed(const std::string& more) { return Machine::parse(kLeast + more, "here.toml"); }

TEST(Machines, AllShippedDescriptionsAreRead) {
  const std::vector<std::string> names = Machine::shipped();
  EXPECT_EQ(names, (std::vector<std::string>{"cpu-cluster", "h100x8", "h200x64", "h200x8", "tpuv2-512", "tpuv5e-256"}));
  for (const std::string& name : names) {
    const Machine machine = Machine::load(name);
    EXPECT_GT(machine.peak(), 0) << name;
    EXPECT_GT(machine.memory_bytes, 0) << name;
    int joined = 1;
    for (const Link& link : machine.links) joined *= link.units();
    EXPECT_EQ(joined, machine.processors) << name;
  }
}

TEST(Machines, HaveDefaultsForAllButThePeaks) {
  const Machine machine = parsed("");
  EXPECT_EQ(machine.processors, 1);
  EXPECT_EQ(machine.peak(DType::kBF16), 1e11);
  ASSERT_EQ(machine.rates.size(), 1u);
  EXPECT_EQ(machine.rates[0].sweep.values, std::vector<double>{1e10});
  EXPECT_TRUE(machine.overlaps);
  EXPECT_EQ(machine.skew, 0);
  EXPECT_EQ(Machine{}.peak(), 0);
}

TEST(Machines, SurviveTheirText) {
  for (const std::string& name : Machine::shipped()) {
    const Machine machine = Machine::load(name);
    const Machine again = Machine::parse(machine.text(), name);
    EXPECT_EQ(again.text(), machine.text()) << name;
    EXPECT_EQ(again.links.size(), machine.links.size()) << name;
    EXPECT_EQ(again.rates[0].products.size(), machine.rates[0].products.size()) << name;
  }
}

TEST(Machines, AreReadFromFiles) {
  const std::string path = testing::TempDir() + "weft_machine.toml";
  std::ofstream(path) << kLeast << "bf16 = 2e11  # twice as many\n";
  EXPECT_EQ(Machine::load(path).peak(DType::kBF16), 2e11);
  std::remove(path.c_str());
}

TEST(Machines, ChooseRatesByTheCoresOfAProcessor) {
  Machine machine = parsed("[[rates]]\ncores = 1\noverhead = 1e-6\n[[rates]]\ncores = 4\noverhead = 2e-6\n");
  machine.cores = 4;
  EXPECT_EQ(machine.rates_of(1).cores, 4);
  EXPECT_EQ(machine.rates_of(2).cores, 1);  // two cores: the rates of one are the nearest that it surely has
  EXPECT_EQ(machine.rates_of(8).cores, 1);
  EXPECT_EQ(machine.crowding(4), 1);
  EXPECT_EQ(machine.crowding(8), 2);
  machine.cores = 0;
  EXPECT_EQ(machine.crowding(8), 1);
}

TEST(MachineTables, AreLinearInLogarithms) {
  const Table table{{{1, 100}, {10, 1000}}, {1, 10, 100, 1000}};
  const auto at = [&](double a, double b) { return table.at(std::vector<double>{a, b}); };
  EXPECT_NEAR(at(1, 10), 1, 1e-12);
  EXPECT_NEAR(at(100, 1000), 1000, 1e-9);
  EXPECT_NEAR(at(10, 10), 10, 1e-12);  // half way from 1 to 100
  EXPECT_NEAR(at(1, 100), std::sqrt(10), 1e-12);
  EXPECT_NEAR(at(10, 100), 10 * std::sqrt(10), 1e-9);
  EXPECT_NEAR(at(0.001, 1), 1, 1e-12);  // constant beyond the ends
  EXPECT_NEAR(at(1e9, 1e9), 1000, 1e-9);
  EXPECT_NEAR(Table::constant(7).at({}), 7, 1e-12);
}

TEST(MachineErrors, UnknownName) {
  EXPECT_USER_ERROR(Machine::load("h200x9"),
                    lines("there is no machine 'h200x9', and no file of that name can be read", "machine h200x9",
                          "did you mean 'h200x8'? there are: cpu-cluster, h100x8, h200x64, h200x8, tpuv2-512, "
                          "tpuv5e-256; weft calibrate describes this machine"));
}

TEST(MachineErrors, NotToml) {
  EXPECT_USER_ERROR(parsed("= 3"), "the machine description is not TOML: ", "where: here.toml:5", kSee);
}

TEST(MachineErrors, UnknownKey) {
  EXPECT_USER_ERROR(parsed("[[link]]\nname = \"a\"\ntopology = \"ring\"\nsides = [4]\nlatency = 1e-6\nbandwith = 1e9\n"
                           "bandwidth = 1e9\n"),
                    "a machine description has no key 'link.bandwith'", "here.toml:10",
                    "did you mean 'bandwidth'? there are: ");
  EXPECT_USER_ERROR(Machine::parse("procesors = 2\n" + kLeast, "here.toml"),
                    "a machine description has no key 'procesors'", "did you mean 'processors'?");
}

TEST(MachineErrors, MissingKey) {
  EXPECT_USER_ERROR(
      Machine::parse("processors = 2\n", "here.toml"),
      lines("the machine description has no 'bytes_per_second'", "here.toml:1", std::string("add it; ") + kSee));
  EXPECT_USER_ERROR(parsed("[[rates]]\n[[rates.product]]\ndtype = \"f32\"\n"),
                    "the machine description has no 'rates.product.rate'");
}

TEST(MachineErrors, WrongValues) {
  const auto refused = [](const std::string& more, const std::string& what) {
    EXPECT_USER_ERROR(parsed(more), what, kSee);
  };
  EXPECT_USER_ERROR(Machine::parse("processors = -2\n", "here.toml"),
                    "'processors' is a whole number from 1 to 1000000, but it was given -2", "here.toml:1");
  refused("bf16 = 0\n", "'peak.bf16' is a number from 1e-12 to 1e+30, but it was given 0");
  refused("bf16 = \"fast\"\n", "'peak.bf16' is a number from");
  refused("[[rates]]\noverhead = -1.0\n", "'rates.overhead' is 0, or a number from 1e-12 to 1e+30");
  refused("[[rates]]\n[[rates.product]]\ndtype = \"f32\"\nrate = 1.0\nn = [8]\n",
          "'rates.product.n' is given with 'm' and the other sizes");
  refused("[[rates]]\nhidden = 2\n", "'rates.hidden' is a number from 0 to 1, but it was given 2");
  refused("[[rates]]\n[rates.sweep]\nbytes = [2, 1]\nrate = [1, 1]\n",
          "'rates.sweep.bytes' is a list of sizes in ascending order");
  refused("[[rates]]\n[[rates.product]]\ndtype = \"f31\"\nrate = 1.0\n",
          "'rates.product.dtype' is one of f32, bf16, f16, f64, i8, but it was given 'f31'");
  refused("[[rates]]\n[[rates.product]]\ndtype = \"f32\"\nrate = 1.0\ntile = [8, 8]\n", "a list of three sizes");
  refused("[[link]]\nname = \"a\"\ntopology = \"torus\"\nsides = [4]\nbandwidth = 1.0\n",
          "a list of one size, or of two or three for a torus");
  refused("[[link]]\nname = 3\n", "'link.name' is a text in quotes");
  refused("[[link]]\nname = \"a\"\ntopology = \"star\"\n",
          "'link.topology' is one of ring, torus, switch, shared memory");
  EXPECT_USER_ERROR(Machine::parse("memory = \"much\"\n" + kLeast, "here.toml"), "a number of bytes such as");
  EXPECT_USER_ERROR(Machine::parse("overlap = 1\n" + kLeast, "here.toml"), "'overlap' is true or false");
  EXPECT_USER_ERROR(Machine::parse("skew = 2\n" + kLeast, "here.toml"), "'skew' is a number from 0 to 1");
  EXPECT_USER_ERROR(Machine::parse("link = 1\n" + kLeast, "here.toml"), "'link' is a list");
}

TEST(MachineErrors, NothingJoinsItsProcessors) {
  EXPECT_USER_ERROR(
      Machine::parse("processors = 16\nbytes_per_second = 1e10\n[peak]\nf32 = 1e11\n", "here.toml"),
      lines("the machine has 16 processors, but its description has neither links nor measured collectives",
            "here.toml:1", std::string("add [[link]] tables, or 'processors = 1'; ") + kSee));
}

TEST(MachineErrors, GivenTwice) {
  const std::string product = "[[rates.product]]\ndtype = \"f32\"\nrate = 1.0\n";
  EXPECT_USER_ERROR(parsed("[[rates]]\n" + product + product),
                    lines("'rates.product' is given twice for f32", "here.toml:9", "keep one of them"));
  EXPECT_USER_ERROR(parsed("[[rates]]\ncores = 2\n[[rates]]\ncores = 2\n"), "'rates' is given twice for 2");
  EXPECT_USER_ERROR(Machine::parse("processors = 1\nbytes_per_second = 1.0\n[[peak]]\nf32 = 1.0\n", "here.toml"),
                    "'peak' is one table");
}

TEST(MachineErrors, BadTable) {
  EXPECT_USER_ERROR(
      parsed("[[rates]]\n[[rates.product]]\ndtype = \"f32\"\nm = [1, 2]\nn = [1]\nk = [1]\nrate = [1e9]\n"),
      lines("'rates.product.rate' has 1 numbers for 2 points", "here.toml:11",
            "give one number for every combination of the sizes, the last size changing fastest"),
      "machine.bad-table");
}

TEST(MachineErrors, TooFewLinks) {
  EXPECT_USER_ERROR(Machine::parse("processors = 4\nbytes_per_second = 1e10\n[peak]\nf32 = 1e11\n[[link]]\n"
                                   "name = \"a\"\ntopology = \"switch\"\nsides = [2]\nbandwidth = 1e9\n",
                                   "here.toml"),
                    "the links join 2 processors, but the machine has 4",
                    "add the outer level of links, or correct the sides: their product is the processors");
}

}  // namespace
}  // namespace weft
