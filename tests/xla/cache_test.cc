// Executables on disk, and compiling in a child process and ahead of time.
#include "runtime/xla/compiler.h"
#include "weft/detail/doctor.h"
#include "weft/explain.h"
#include "xla/fake.h"

namespace weft::xla_test {
namespace {

class XlaCache : public FakeTest {
 protected:
  void run() {
    SmallStep step;
    Session session(Mesh::parse("a:2"), wire::threads(), device());
    step.compile(session).run(step.feeds());
  }
  // What the run says on standard error.
  std::string said() {
    ::testing::internal::CaptureStderr();
    run();
    return ::testing::internal::GetCapturedStderr();
  }
  Explanation ahead(const std::string& topology) {
    SmallStep step;
    const CompileOptions options = step.options();
    device::Choice choice = device();
    choice.topology = topology;
    return explain(step.graph, Mesh::parse("a:2"), Layout(), options, Machine::uniform(1e9, 1e9), {}, choice);
  }
};

TEST_F(XlaCache, KeepsWhatAChildCompiled) {
  run();
  EXPECT_EQ(compilations(), 0);  // a child did it
  ASSERT_EQ(cached().size(), 1u);
  tell("compile-abort");
  run();  // from the cache
  EXPECT_EQ(cached().size(), 1u);
}

TEST_F(XlaCache, RebuildsADamagedExecutable) {
  run();
  ASSERT_EQ(cached().size(), 1u);
  const std::filesystem::path kept = cached()[0];
  const std::uintmax_t size = std::filesystem::file_size(kept);
  std::filesystem::resize_file(kept, size / 2);
  EXPECT_EQ(said(), "warning: the cached executable " + kept.string() + " is damaged; it is compiled again\n");
  EXPECT_EQ(std::filesystem::file_size(kept), size);
  EXPECT_EQ(said(), "");
}

TEST_F(XlaCache, CompilesHereWhatThePluginCannotLoadOrSerialize) {
  tell("load-error");
  EXPECT_NE(said().find("warning: the plugin cannot load an executable that it has compiled; it is compiled again"),
            std::string::npos);
  EXPECT_EQ(compilations(), 1);
  std::filesystem::remove_all(cache);
  tell("serialize-error");
  EXPECT_EQ(said(), "");
  EXPECT_EQ(compilations(), 2);
  EXPECT_TRUE(cached().empty());
}

TEST_F(XlaCache, CompilesHereForRealDevicesAndWithoutTheProgram) {
  tell("devices=2");
  run();
  EXPECT_EQ(compilations(), 1);
  EXPECT_EQ(cached().size(), 1u);
  std::filesystem::remove_all(cache);
  tell("");
  setenv("WEFT_PJRT_COMPILE", "/nowhere", 1);
  run();
  EXPECT_EQ(compilations(), 2);
}

TEST_F(XlaCache, CanBeOffOrUnwritable) {
  setenv("WEFT_XLA_CACHE", "off", 1);
  run();
  EXPECT_TRUE(cached().empty());
  std::ofstream(file("plain")) << "a file";
  setenv("WEFT_XLA_CACHE", file("plain").c_str(), 1);
  EXPECT_NE(said().find("warning: executables cannot be kept in "), std::string::npos);
  setenv("WEFT_XLA_CACHE", cache.c_str(), 1);
  run();
  ASSERT_EQ(cached().size(), 1u);
  const std::filesystem::path kept = cached()[0];
  std::filesystem::remove(kept);
  std::filesystem::create_directory(kept);
  EXPECT_EQ(said(), "warning: the cached executable " + kept.string() + " is damaged; it is compiled again\n");
}

TEST_F(XlaCache, RequestsAndResultsSurviveTheirBytes) {
  const xla::CompileRequest request{.plugin = "p.so", .devices = 512, .topology = "v4:8x8x4", .module = "module {}"};
  const auto again = xla::request_from(to_bytes(request));
  ASSERT_TRUE(again.has_value());
  EXPECT_EQ(again->topology, request.topology);
  EXPECT_EQ(again->devices, 512);
  EXPECT_EQ(again->module, request.module);
  const std::string bytes = to_bytes(xla::CompileResult{.message = "m", .seconds = 2.5, .executable = "bytes"});
  for (std::size_t size = 0; size < bytes.size(); ++size)
    EXPECT_FALSE(xla::result_from(bytes.substr(0, size)).has_value()) << size;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    std::string damaged = bytes;
    damaged[i] = static_cast<char>(damaged[i] ^ 1);
    EXPECT_FALSE(xla::result_from(damaged).has_value()) << i;
  }
  EXPECT_EQ(xla::result_from(bytes)->seconds, 2.5);
}

TEST_F(XlaCache, CompilesAheadOfTimeAndShowsBothAccounts) {
  const Explanation e = ahead("fake:2");
  ASSERT_TRUE(e.compiler.has_value());
  EXPECT_EQ(e.compiler->topology, "fake:2");
  EXPECT_EQ(e.compiler->temporaries, 3072);
  EXPECT_TRUE(std::filesystem::exists(e.compiler->executable));
  const std::string text = e.summary();
  for (const char* piece : {"arena  ", "as fake.so reports it, ahead of time for fake:2", "temporaries", "verdict",
                            "fits into the memory of the devices", "kept in"})
    EXPECT_NE(text.find(piece), std::string::npos) << piece << " is missing in\n" << text;
}

TEST_F(XlaCache, ShowsTheCompilersRefusal) {
  tell("out-of-memory");
  const Explanation e = ahead("fake:2");
  ASSERT_TRUE(e.compiler.has_value());
  EXPECT_EQ(e.compiler->refusal, "24.00G exceeds available HBM (15.75G)");
  EXPECT_NE(e.summary().find("does not fit, says fake.so ahead of time for fake:2: 24.00G exceeds"), std::string::npos);
}

TEST_F(XlaCache, RefusesTopologiesThatDoNotFit) {
  EXPECT_USER_ERROR(ahead("v99:2"), "the plugin cannot compile for topology 'v99:2': Invalid external name",
                    "write a topology of the plugin: v4:2x2x1 for libtpu, h200:1x1x8 for NVIDIA's plugin; docs/xla.md "
                    "lists more. XLA's CPU plugin has none: leave --topology out");
  EXPECT_USER_ERROR(ahead("fake:3"), "mesh a:2 has 2 processors, but topology fake:3 has 3 devices",
                    "choose a mesh with as many processors as the topology has devices (a chip of TPU v2, v3, v4 and "
                    "TPU7x has two)");
  device::Choice choice = device();
  choice.topology = "fake:2";
  EXPECT_USER_ERROR(Session(Mesh::parse("a:2"), wire::threads(), choice),
                    "the devices of topology fake:2 are not here to run on",
                    "add --dry-run, which compiles and runs nothing, or leave --topology out");
}

TEST_F(XlaCache, ReportsAnOldPluginFromTheChild) {
  tell("minor=80");
  EXPECT_USER_ERROR(ahead("fake:2"), "has version 0.80 of the PJRT interface", "device.xla-plugin-version");
}

TEST_F(XlaCache, DoctorListsThePlugin) {
  const auto lines = doctor(plugin);
  const auto has = [&](const std::string& text) {
    return std::any_of(lines.begin(), lines.end(), [&](const auto& line) { return line.second == text; });
  };
  EXPECT_TRUE(has(plugin + ": PJRT 0.81, StableHLO 1.13.3; 1 device fake, platform fake"));
}

}  // namespace
}  // namespace weft::xla_test
