// The page of a step: its sections, that it is well-formed, that text of users is escaped, and files that cannot be written.
#include "weft/report.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/str.h"
#include "support/command.h"
#include "support/expect_error.h"
#include "weft/detail/models.h"
#include "weft/detail/target.h"

namespace weft::report_test {
namespace {

using test::ran;
using ::testing::HasSubstr;
using ::testing::Not;

const char* const kAllSections = "summary mesh memory timeline collectives frontier candidates rules ";

std::string temporary(const std::string& name) {
  return str(::testing::TempDir(), "weft_report_", getpid(), "_", name);
}

std::string content(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

// What well_formed.py prints of a page: "summary 0 0\nmesh 8 0\n…".
test::Ran parsed(const std::string& path, const std::string& texts = "") {
  return ran(str(WEFT_TEST_DATA, "/report/well_formed.py ", path, " ", texts, " 2>&1"));
}

std::string sections(const test::Ran& of_parser) {
  std::string names;
  for (const std::string& row : split_words(of_parser.output, "\n")) names += split_words(row, " ").front() + " ";
  return names;
}

Machine flat() {
  return Machine::parse(
      "processors = 8\nmemory = \"1MB\"\nbytes_per_second = 1e9\n[peak]\nf32 = 1e9\n[[rates]]\nsweep = 1e9\n"
      "pointwise = 1e9\nrandom = 1e9\n[[link]]\nname = \"<wires & more>\"\ntopology = \"switch\"\nsides = [8]\n"
      "latency = 1e-6\nbandwidth = 1e8\n",
      "test");
}

StepReport two_layer_report(const std::string& title = "two layers") {
  const models::Model model = models::build("two_layer", {{"batch", 16}, {"io", 8}, {"hidden", 32}});
  const Machine machine = flat();
  StepReport report{.title = title,
                    .compiled = explain(model.graph, Mesh::parse("rows:2 cols:4"),
                                        Layout::parse("batch:rows hidden:cols"), model.options, machine),
                    .predicted = {}};
  report.predicted = simulate(report.compiled.program(), machine);
  return report;
}

TEST(Report, HasAllSectionsAndIsWellFormed) {
  const std::string path = temporary("sections.html");
  two_layer_report().write(path);
  const test::Ran page =
      parsed(path, "'No search was made for this page' 'all_reduce over cols' 'batch:rows hidden:cols'");
  EXPECT_EQ(page.code, 0) << page.output;
  EXPECT_EQ(sections(page), kAllSections);
  std::filesystem::remove(path);
}

TEST(Report, TheTransfersOfASimulationAreItsCollectives) {
  const StepReport report = two_layer_report();
  std::int64_t bytes = 0, counted = 0;
  double seconds = 0, exposed = 0;
  for (const Simulation::Transfer& t : report.predicted.transfers) {
    bytes += t.bytes;
    seconds += t.seconds;
    exposed += t.exposed_seconds;
    EXPECT_FALSE(t.cause.empty());
  }
  for (const Explanation::Collective& c : report.compiled.collectives) counted += c.bytes;
  EXPECT_EQ(bytes, counted);
  EXPECT_NEAR(seconds, report.predicted.wire_seconds, 1e-12);
  EXPECT_NEAR(exposed, report.predicted.exposed_seconds, 1e-12);
}

TEST(Report, EscapesTextOfUsers) {
  const std::string path = temporary("escaped.html");
  StepReport report = two_layer_report("<script>alert('1')</script> & \"more\" \x01\xff");
  report.predicted.transfers.front().cause = "</td><b>line";
  report.predicted.machine = "<machine>";
  report.write(path);
  const std::string page = content(path);
  EXPECT_THAT(page, HasSubstr("&lt;script&gt;alert(&#39;1&#39;)&lt;/script&gt; &amp; &quot;more&quot;"));
  EXPECT_THAT(page, Not(HasSubstr("<script")));
  EXPECT_THAT(page, Not(HasSubstr("</td><b>line")));
  EXPECT_THAT(page, Not(HasSubstr("<machine>")));
  const test::Ran xml = parsed(path, "'</td><b>line'");
  EXPECT_EQ(xml.code, 0) << xml.output;
  std::filesystem::remove(path);
}

TEST(Report, ShowsAPlanAndAMeasuredStep) {
  const std::string path = temporary("plan.html");
  const models::Model model = models::build("two_layer", {{"batch", 16}, {"io", 8}, {"hidden", 32}});
  StepReport report = two_layer_report();
  report.plan = plan({model.graph, model.options.fetch, model.options.update, false, {}}, flat(), 8);
  report.measured = {.seconds = 0.5, .device = "cpu", .trace = report.predicted.trace()};
  report.write(path);
  const test::Ran page = parsed(path, "'measured, processor 0 of device cpu' 'chosen' '500 ms'");
  EXPECT_EQ(page.code, 0) << page.output;
  EXPECT_EQ(sections(page), kAllSections);
  EXPECT_THAT(page.output, HasSubstr("frontier 2 0\ncandidates 0 1\n"));
  std::filesystem::remove(path);
}

TEST(Report, RefusesWhatItCannotShow) {
  StepReport unknown = two_layer_report();
  unknown.show = {"no_such_tensor"};
  EXPECT_USER_ERROR(unknown.html(), "no_such_tensor");
  StepReport garbled = two_layer_report();
  garbled.measured = {.seconds = 1, .device = "cpu", .trace = "{}"};
  EXPECT_USER_ERROR(garbled.html(), "the measured trace of a report is not a trace of Weft",
                    "give the text of Executable::trace, or leave it empty", "report.not-a-trace");
}

TEST(Report, AFileThatCannotBeWrittenIsRefusedAndLeavesNothing) {
  const std::string folder = temporary("folder");
  std::filesystem::create_directories(folder);
  for (const std::string& path : {std::string("/no/such/folder/page.html"), folder})
    for (const char* command :
         {"simulate two_layer --machine h200x8", "plan paper/lm-0.14b --machine h200x8 --seconds 1",
          "bench lm --config tiny --steps 1"}) {
      const test::Ran out = ran(str(WEFT_COMMAND, " ", command, " --report ", path, " 2>&1"));
      EXPECT_EQ(out.code, 3) << command;
      EXPECT_EQ(out.count("error: cannot write the report to '" + path + "': "), 1u) << out.output;
      EXPECT_EQ(out.count("fix:   name a file in a folder that exists and that you may write to"), 1u) << out.output;
    }
  EXPECT_TRUE(std::filesystem::is_empty(folder));
  EXPECT_FALSE(std::filesystem::exists(folder + ".partial"));
  std::filesystem::remove(folder);
}

TEST(ReportCommand, SimulateAndBenchWritePages) {
  const std::string path = temporary("command.html");
  const auto expect_page = [&](const std::string& command, const std::string& texts) {
    const test::Ran out = ran(str(WEFT_COMMAND, " ", command, " --report ", path, " 2>&1"));
    ASSERT_EQ(out.code, 0) << out.output;
    const test::Ran page = parsed(path, texts);
    EXPECT_EQ(page.code, 0) << page.output;
    EXPECT_EQ(sections(page), kAllSections);
    std::filesystem::remove(path);
  };
  expect_page("simulate lm/tiny --mesh data:4 --layout batch:data --machine h200x8", "'4 processors of h200x8'");
  expect_page("bench lm --config tiny --mesh data:2 --layout batch:data --steps 2 --warmup 1",
              "'measured step' 'bench lm tiny, f32'");
}

}  // namespace
}  // namespace weft::report_test
