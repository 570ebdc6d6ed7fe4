// The page as a whole, and its file.
#include "weft/report.h"

#include <cerrno>
#include <cstring>

#include "report/html.h"
#include "report/sections.h"
#include "weft/detail/written_file.h"
#include "weft/error.h"

namespace weft {

namespace {

RunError cannot_write(const std::string& path, int error) {
  return RunError({.code = "report.cannot-write",
                   .what = "cannot write the report to '" + path + "': " + std::strerror(error),
                   .where = path,
                   .fix = "name a file in a folder that exists and that you may write to"});
}

}  // namespace

std::string StepReport::html() const {
  using namespace report;
  const int processors = compiled.mesh.size();
  const std::string where = text(processors, processors == 1 ? " processor of " : " processors of ", predicted.machine);
  std::string body = text(
      "<h1>", escaped(title), "</h1>\n",
      paragraph(text("A step on ", where, measured ? text("; measured on device ", measured->device) : ""), "soft"));
  body += section("summary", "The choice", summary_body(*this));
  body += section("mesh", "The mesh and the shards", mesh_body(*this));
  body += section("memory", "Memory over the step", memory_body(*this));
  body += section("timeline", "The step in time", timeline_body(*this));
  body += section("collectives", "Bytes of collectives", collectives_body(*this));
  body += section("frontier", "Time against memory", frontier_body(*this));
  body += section("candidates", "Candidates", candidates_body(*this));
  body += section("rules", "Why each rule is there", rules_body(*this));
  return text("<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"/>\n",
              "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n",
              "<link rel=\"icon\" href=\"data:,\"/>\n<title>", escaped(title), " - weft</title>\n<style>", kStyleSheet,
              "</style></head>\n<body><main>\n", body, "</main></body></html>\n");
}

void StepReport::write(const std::string& path) const {
  const std::string page = html();
  errno = 0;
  detail::WrittenFile file(path);
  file.stream() << page;
  if (!file.finish()) throw cannot_write(path, errno);
}

void check_report_path(const std::string& path) {
  errno = 0;
  detail::WrittenFile file(path);
  if (!file.stream()) throw cannot_write(path, errno);
}

}  // namespace weft
