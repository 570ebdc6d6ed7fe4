// Plugins that cannot be used, or that fail: what a user reads.
#include "runtime/engine.h"
#include "runtime/xla/compiler.h"
#include "xla/fake.h"

namespace weft::xla_test {
namespace {

class XlaPlugin : public FakeTest {
 protected:
  void open(const std::string& mesh = "a:2") { Session(Mesh::parse(mesh), wire::threads(), device()); }
  void run(const SessionOptions& options = {}) {
    SmallStep step;
    Session session(Mesh::parse("a:2"), wire::threads(), device(), options);
    step.compile(session).run(step.feeds());
  }
};

TEST_F(XlaPlugin, IsNeeded) {
  EXPECT_USER_ERROR(
      Session(Mesh(), wire::threads(), device::xla()), "the device 'xla' needs a PJRT plugin, and none is given",
      "add --plugin FILE.so, or set mesh.plugin or the environment variable WEFT_PLUGIN; weft doctor lists "
      "the plugins that it finds");
  EXPECT_USER_ERROR(Session(Mesh(), wire::threads(), {"cpu", plugin}), "the device 'cpu' has no plugins",
                    "add --device xla, or leave --plugin out");
}

TEST_F(XlaPlugin, IsASharedLibraryWithAnEntry) {
  const std::string fix =
      "give the path of a plugin's shared library: --plugin …/xla_cpu_pjrt.so; docs/xla.md says where to get one";
  plugin = file("none.so");
  EXPECT_USER_ERROR(open(), "none.so' is no PJRT plugin: ", "cannot open shared object file", fix);
  plugin = "libm.so.6";
  EXPECT_USER_ERROR(open(), "'libm.so.6' is no PJRT plugin: it has no function GetPjrtApi", fix);
}

TEST_F(XlaPlugin, IsNotTooOld) {
  tell("minor=80");
  EXPECT_USER_ERROR(open(), "the plugin '", "' has version 0.80 of the PJRT interface; Weft needs 0.81 or a later 0.x",
                    "install a newer release of the plugin: docs/xla.md lists releases that were tried");
}

TEST_F(XlaPlugin, IsNotOfAnotherMajorVersion) {
  tell("major=1");
  EXPECT_USER_ERROR(open(), "the plugin '", "' has version 1.81 of the PJRT interface; Weft needs 0.81 or a later 0.x",
                    "use an older release of the plugin, or a newer release of Weft");
}

TEST_F(XlaPlugin, ReadsStablehloOfOurVersion) {
  tell("stablehlo=1.9.0");
  EXPECT_USER_ERROR(open(), "the plugin '", "' reads StableHLO 1.9.0; Weft writes 1.13",
                    "install a newer release of the plugin");
}

TEST_F(XlaPlugin, HasOneDeviceForEachProcessor) {
  tell("devices=3");
  EXPECT_USER_ERROR(open(), "mesh a:2 has 2 processors, but the plugin has 3 devices fake",
                    "choose a mesh of 3, or make other devices visible to the plugin");
  open("a:3");
}

TEST_F(XlaPlugin, MayRefuseAModule) {
  tell("compile-error");
  EXPECT_RUN_ERROR(run(), "PJRT_Client_Compile failed with INVALID_ARGUMENT: the fake compiler refuses the module",
                   "device.xla-call-failed", "see `weft doctor --plugin PLUGIN` and docs/xla.md");
}

TEST_F(XlaPlugin, MayAbortInItsCompiler) {
  tell("compile-abort");
  EXPECT_RUN_ERROR(
      run(),
      "the compiler of the plugin crashed with signal 6, Aborted; its last words: Check failed: the "
      "fake compiler aborts",
      "use another release of the plugin or --device cpu; send the module (weft export --stablehlo) to the "
      "plugin's makers",
      "device.xla-compiler-crashed");
  tell("");
  run();  // a new session works
}

TEST_F(XlaPlugin, MayFailToRun) {
  tell("execute-error");
  EXPECT_RUN_ERROR(run(), "PJRT_LoadedExecutable_Execute failed with RESOURCE_EXHAUSTED: the fake device has no memory",
                   "use a smaller model or batch, microbatches, a storage layout, or more devices");
  EXPECT_EQ(live(), 0);
  tell("step-error");
  EXPECT_RUN_ERROR(run(), "PJRT_LoadedExecutable_Execute failed with INTERNAL: a fake device failed");
  EXPECT_EQ(live(), 0);
}

TEST_F(XlaPlugin, MayHang) {
  tell("hang");
  EXPECT_RUN_ERROR(run({.deadline_seconds = 0.2}),
                   "the devices have not finished a step in 0.2 s; XLA does not say which processor is missing",
                   "see the device's own tools, or run the step with --device cpu, which names the processor, the "
                   "collective and the tensor");
}

// cuDNN's fused attention needs cards of compute capability 8.0.
TEST_F(XlaPlugin, TellsWhatModulesMayUse) {
  const auto platform = [&](const std::string& words) {
    tell(words);
    return xla::platform_of(xla::Client(xla::Plugin::open(plugin, plugin), 1));
  };
  EXPECT_EQ(platform(""), stablehlo::Platform::kAny);
  EXPECT_EQ(platform("cuda=7.5"), stablehlo::Platform::kAny);
  EXPECT_EQ(platform("cuda=8.0"), stablehlo::Platform::kCuda);
  EXPECT_EQ(platform("cuda=10.3"), stablehlo::Platform::kCuda);
  EXPECT_EQ(platform("cuda"), stablehlo::Platform::kCuda);  // a plugin that says nothing of it is new
}

TEST_F(XlaPlugin, OfATopologyTellsWhatModulesMayUse) {
  EXPECT_EQ(xla::platform_of_topology("h200:1x1x8"), stablehlo::Platform::kCuda);
  EXPECT_EQ(xla::platform_of_topology("v4:2x2x1"), stablehlo::Platform::kAny);
  const auto card = [&](const char* name, const std::string& text) {
    std::ofstream(file(name)) << text;
    return xla::platform_of_topology(file(name).string() + ":1x1x8");
  };
  const std::string of_cuda = "gpu_device_info { cuda_compute_capability { major: ";
  EXPECT_EQ(card("old", of_cuda + "7 minor: 5 } }\nplatform_name: \"CUDA\"\n"), stablehlo::Platform::kAny);
  EXPECT_EQ(card("new", of_cuda + "8 } }\nplatform_name: \"CUDA\"\n"), stablehlo::Platform::kCuda);
  EXPECT_EQ(card("other", "platform_name: \"ROCM\"\n"), stablehlo::Platform::kAny);
}

}  // namespace
}  // namespace weft::xla_test
