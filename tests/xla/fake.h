// The fake plugin of a test: a copy of the library, so that every test has a plugin in its first state, with a cache and
// a way to misbehave of its own.
#pragma once

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "support/expect_error.h"
#include "weft/weft.h"

namespace weft::xla_test {

class FakeTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ =
        std::filesystem::temp_directory_path() / ("weft-fake-" + std::to_string(getpid()) + "-" +
                                                  ::testing::UnitTest::GetInstance()->current_test_info()->name());
    std::filesystem::create_directories(folder_);
    plugin = folder_ / "fake.so";
    std::filesystem::copy_file(WEFT_FAKE_PLUGIN, plugin, std::filesystem::copy_options::overwrite_existing);
    cache = folder_ / "cache";
    setenv("WEFT_XLA_CACHE", cache.c_str(), 1);
    tell("");
  }
  void TearDown() override {
    unsetenv("WEFT_XLA_CACHE");
    unsetenv("WEFT_FAKE_PJRT");
    unsetenv("WEFT_PLUGIN");
    unsetenv("WEFT_PJRT_COMPILE");
    std::filesystem::remove_all(folder_);
  }

  // How the plugin misbehaves from now on: tests/xla/fake_plugin.cc.
  static void tell(const std::string& words) { setenv("WEFT_FAKE_PJRT", words.c_str(), 1); }

  // Objects that the plugin has made and that nobody has destroyed; runs; compilations in this process.
  long live() const { return count("fake_pjrt_live"); }
  long executions() const { return count("fake_pjrt_executions"); }
  long compilations() const { return count("fake_pjrt_compilations"); }

  device::Choice device() const { return device::xla(plugin); }
  std::filesystem::path file(const char* name) const { return folder_ / name; }
  std::vector<std::filesystem::path> cached() const {
    std::vector<std::filesystem::path> all;
    if (std::filesystem::exists(cache))
      for (const auto& entry : std::filesystem::directory_iterator(cache)) all.push_back(entry.path());
    return all;
  }

  std::string plugin, cache;

 private:
  long count(const char* name) const {
    void* library = dlopen(plugin.c_str(), RTLD_NOW | RTLD_NOLOAD);
    if (!library) return 0;
    const auto function = reinterpret_cast<long (*)()>(dlsym(library, name));
    const long counted = function();
    dlclose(library);
    return counted;
  }
  std::filesystem::path folder_;
};

// w += x, and the mean of w x: one input, one variable that changes, one that does not, and one fetched tensor.
struct SmallStep {
  Dim width{"width", 8};
  Graph graph;
  Tensor x = graph.input("x", {width});
  Tensor w = graph.variable("w", {width}, init::ones());
  Tensor still = graph.variable("still", {width}, init::constant(2));
  Tensor loss = mean(w * x * still);

  CompileOptions options() { return {.fetch = {loss}, .update = {assign(w, w + x)}}; }
  Executable compile(Session& session, const std::string& layout = "") {
    return session.compile(graph, Layout::parse(layout), options());
  }
  Feeds feeds() const { return {{x, Array({width}, DType::kF32)}}; }
};

}  // namespace weft::xla_test
